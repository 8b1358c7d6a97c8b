#include "tools/reports/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace plumb { inline namespace tools {
namespace {

/// Returns the number of characters on the screen: the bytes that do not continue a UTF-8 sequence.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

bool is_number(std::string_view cell) {
  const std::size_t first = cell.find_first_not_of("+-");
  return first < cell.size() && first <= 1 && cell[first] >= '0' && cell[first] <= '9';
}

/// Returns `value` with three significant digits, never in scientific notation.
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  return fmt::format("{:.{}f}", value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
}

}  // namespace

std::string to_text(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& cell : table.head) widths.push_back(width_of(cell));
  for (const auto& row : table.rows) {
    assert(row.size() == widths.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::vector<bool> to_right(widths.size(), true);
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      to_right[c] = to_right[c] && (row[c].empty() || row[c] == "-" || is_number(row[c]));
  }

  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - width_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (to_right[c] ? blanks + row[c] : row[c] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append(table.head);
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  append(rule);
  for (const auto& row : table.rows) append(row);
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
