#include "tools/reports/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "tools/io/utf8.h"

namespace plumb { inline namespace tools {
namespace {

bool is_number(std::string_view cell) {
  const std::size_t first = cell.find_first_not_of("+-");
  return first < cell.size() && first <= 1 && cell[first] >= '0' && cell[first] <= '9';
}

/// Returns `value` with three significant digits, never in scientific notation.
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  return fmt::format("{:.{}f}", value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
}

constexpr std::size_t kGap = 2;         ///< blanks between columns
constexpr std::size_t kNarrowest = 20;  ///< characters of a cell that is not broken, however narrow the terminal is
std::size_t folding_width = std::numeric_limits<std::size_t>::max();

struct ColumnForm {
  std::size_t width = 0;
  bool to_right = true;
};

std::vector<ColumnForm> columns_of(const TextTable& table) {
  std::vector<ColumnForm> columns;
  for (const std::string& cell : table.head) columns.push_back({.width = width_of(cell)});
  for (const auto& row : table.rows) {
    assert(row.size() == columns.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      columns[c].width = std::max(columns[c].width, width_of(row[c]));
      columns[c].to_right &= row[c].empty() || row[c] == "-" || is_number(row[c]);
    }
  }
  return columns;
}

/// Returns the parts of a cell, each of at most `most` characters and broken behind a comma or a blank where it can be.
std::vector<std::string> parts_of(std::string_view cell, std::size_t most) {
  std::vector<std::string> parts;
  while (width_of(cell) > most) {
    const std::size_t mark = cell.substr(0, most).find_last_of(", ");
    std::size_t end = mark == std::string_view::npos ? most : mark + 1;
    while (end > 1 && (static_cast<unsigned char>(cell[end]) & 0xC0U) == 0x80U) --end;  // no character is divided
    const std::string_view part = cell.substr(0, end);
    parts.emplace_back(part.substr(0, part.find_last_not_of(' ') + 1));
    cell.remove_prefix(end);
    cell.remove_prefix(std::min(cell.find_first_not_of(' '), cell.size()));
  }
  parts.emplace_back(cell);
  return parts;
}

/// Returns the table with a row that has wider cells than `most` as several.
TextTable with_broken_cells(const TextTable& table, std::size_t most) {
  TextTable result{.head = table.head};
  for (const auto& row : table.rows) {
    const std::size_t first = result.rows.size();
    result.rows.emplace_back(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::vector<std::string> parts = parts_of(row[c], most);
      while (result.rows.size() < first + parts.size()) result.rows.emplace_back(row.size());
      for (std::size_t i = 0; i < parts.size(); ++i) result.rows[first + i][c] = parts[i];
    }
  }
  return result;
}

/// Returns these columns of the table, head and rule above the rows. What is left of a broken row is left out where it
/// has no cell in these columns.
std::string block_text(const TextTable& table, const std::vector<ColumnForm>& columns,
                       const std::vector<std::size_t>& block) {
  std::string text;
  const auto append = [&](const auto& cell_of) {
    std::string line;
    for (const std::size_t c : block) {
      const std::string cell = cell_of(c), blanks(columns[c].width - width_of(cell), ' ');
      line += (c == block.front() ? std::string() : std::string(kGap, ' ')) +
              (columns[c].to_right ? blanks + cell : cell + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append([&](std::size_t c) { return table.head[c]; });
  append([&](std::size_t c) { return std::string(columns[c].width, '-'); });
  for (const auto& row : table.rows) {
    if (std::ranges::any_of(block, [&row](std::size_t c) { return !row[c].empty(); }))
      append([&row](std::size_t c) { return row[c]; });
  }
  return text;
}

}  // namespace

void fold_tables_at(int width) {
  folding_width = static_cast<std::size_t>(std::max(1, width));
}

std::string to_text(const TextTable& whole) {
  const TextTable table = with_broken_cells(whole, std::max(kNarrowest, folding_width / 2));
  const std::vector<ColumnForm> columns = columns_of(table);
  std::string text;
  for (std::size_t next = 0; next < columns.size();) {
    std::vector<std::size_t> block;  // of columns
    std::size_t width = 0;
    const auto take = [&](std::size_t column) {
      width += (block.empty() ? 0 : kGap) + columns[column].width;
      block.push_back(column);
    };
    if (next > 0) take(0);
    do take(next++);
    while (next < columns.size() && width + kGap + columns[next].width <= folding_width);
    if (!text.empty()) text += '\n';
    text += block_text(table, columns, block);
  }
  return text;
}

std::string to_csv(const TextTable& table) {
  std::string text;
  const auto append = [&text](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) text += ',';
      if (row[c].find_first_of(",\"\r\n") == std::string::npos) {
        text += row[c];
        continue;
      }
      text += '"';
      for (const char character : row[c]) text += character == '"' ? "\"\"" : std::string(1, character);
      text += '"';
    }
    text += '\n';
  };
  append(table.head);
  for (const auto& row : table.rows) append(row);
  return text;
}

std::string duration_text(double seconds) {
  struct Unit {
    double size;
    std::string_view name;
  };
  constexpr std::array<Unit, 5> kUnits = {Unit{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}};
  for (const Unit& unit : kUnits) {
    if (std::abs(seconds) >= 0.9995 * unit.size)
      return three_digits(seconds / unit.size) + ' ' + std::string(unit.name);
  }
  return seconds == 0 ? "0 s" : three_digits(seconds * 1e12) + " ps";
}

std::string parameters_text(double parameters) {
  return parameters >= 0.9995e9 ? three_digits(parameters / 1e9) + " B" : three_digits(parameters / 1e6) + " M";
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1023.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return (unit == 0 ? fmt::format("{:.0f}", bytes) : three_digits(bytes)) + ' ' + std::string(kUnits[unit]);
}

}}  // namespace plumb::tools
