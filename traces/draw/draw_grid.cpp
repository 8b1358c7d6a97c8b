#include "traces/draw/draw_grid.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "traces/draw/svg_style.h"

namespace plumb { inline namespace traces {
namespace {

constexpr std::size_t kShownViolations = 8;
constexpr const char* kRed = "\x1b[31;1m";
constexpr const char* kPlain = "\x1b[0m";

/// Maps the (rank, position) of each cell that a violation names to the text of its first violation.
using Faults = std::map<std::pair<int, int>, std::string>;

Faults faults_of(const std::vector<Violation>& violations) {
  Faults faults;
  for (const Violation& violation : violations) {
    if (violation.position >= 0) faults.try_emplace({violation.rank, violation.position}, to_text(violation));
  }
  return faults;
}

std::string violation_text(const std::vector<Violation>& violations, std::size_t i) {
  return i < kShownViolations ? to_text(violations[i])
                              : fmt::format("{} more violations", violations.size() - kShownViolations);
}

std::size_t lines_of(const std::vector<Violation>& violations) {
  return std::min(violations.size(), kShownViolations + 1);
}

/// The actions' texts and the columns that they need.
struct Cells {
  std::vector<std::vector<std::string>> texts;  ///< [rank][position]
  std::size_t width = 1;                        ///< characters of the longest
  std::size_t columns = 0;                      ///< actions of the longest rank
};

Cells cells_of(const Schedule& schedule) {
  Cells cells;
  for (const auto& actions : schedule.ranks) {
    std::vector<std::string> texts;
    for (const Action& action : actions) {
      texts.push_back(to_text(action) + (action.overlaps_next ? "&" : ""));
      cells.width = std::max(cells.width, texts.back().size());
    }
    cells.columns = std::max(cells.columns, texts.size());
    cells.texts.push_back(std::move(texts));
  }
  return cells;
}

/// Returns the first position that the window of `shown` columns shows: the earliest fault is a third from its left
/// edge.
std::size_t first_shown(const Faults& faults, std::size_t columns, std::size_t shown) {
  if (columns <= shown || faults.empty()) return 0;
  int earliest = std::numeric_limits<int>::max();
  for (const auto& [place, text] : faults) earliest = std::min(earliest, place.second);
  const std::size_t before = shown / 3;
  const std::size_t wanted = static_cast<std::size_t>(earliest) > before ? earliest - before : 0;
  return std::min(wanted, columns - shown);
}

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t blanks = width - std::min(width, text.size());
  return std::string(blanks / 2, ' ') + text + std::string(blanks - blanks / 2, ' ');
}

}  // namespace

std::string draw_grid(const Schedule& schedule, const std::vector<Violation>& violations, const DrawOptions& options) {
  const Faults faults = faults_of(violations);
  const Cells cells = cells_of(schedule);
  const std::size_t cell_width = cells.width + 2;
  const std::size_t label_width = fmt::format("rank {}", std::max<std::size_t>(schedule.ranks.size(), 1) - 1).size();
  const std::size_t width = static_cast<std::size_t>(std::max(options.width, 40));
  const std::size_t shown = std::max<std::size_t>(1, (width - label_width - 7) / cell_width);
  const std::size_t first = first_shown(faults, cells.columns, shown);

  std::string text = fmt::format("{}: {} ranks, {} stages, {} micro-batches\n", schedule.name, schedule.ranks.size(),
                                 schedule.stages.size(), schedule.microbatches);
  for (std::size_t r = 0; r < cells.texts.size(); ++r) {
    text += fmt::format("{:>{}} │{}", fmt::format("rank {}", r), label_width, first > 0 ? "…" : " ");
    std::string row;
    for (std::size_t i = first; i < std::min(cells.texts[r].size(), first + shown); ++i) {
      const bool faulty = faults.contains({static_cast<int>(r), static_cast<int>(i)});
      const std::string cell = centred(faulty ? ">" + cells.texts[r][i] + "<" : cells.texts[r][i], cell_width);
      row += faulty && options.color ? kRed + cell + kPlain : cell;
    }
    if (cells.texts[r].size() > first + shown) row += "…";
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  for (std::size_t i = 0; i < lines_of(violations); ++i) text += violation_text(violations, i) + '\n';
  return text;
}

std::string draw_grid_svg(const Schedule& schedule, const std::vector<Violation>& violations) {
  constexpr double kLeft = 70;
  constexpr double kTop = 34;
  constexpr double kRowHeight = 26;
  constexpr double kRowGap = 4;
  constexpr double kLineHeight = 16;
  constexpr double kDigitWidth = 6.8;
  const Faults faults = faults_of(violations);
  const Cells cells = cells_of(schedule);
  const double cell_width = kDigitWidth * static_cast<double>(cells.width) + 8;
  const double grid_bottom = kTop + static_cast<double>(cells.texts.size()) * (kRowHeight + kRowGap);

  std::size_t longest_line = 0;
  for (std::size_t i = 0; i < lines_of(violations); ++i)
    longest_line = std::max(longest_line, violation_text(violations, i).size());
  const double width = std::max(kLeft + cell_width * static_cast<double>(cells.columns),
                                kLeft + kDigitWidth * static_cast<double>(longest_line)) +
                       16;
  const double height = grid_bottom + 16 + kLineHeight * static_cast<double>(lines_of(violations));

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.1f} {:.1f}\" font-family=\"Helvetica, Arial, "
      "sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{}\" y=\"20\" font-size=\"13\" font-weight=\"bold\" fill=\"#222222\">{}: issue order</text>\n",
      width, height, kLeft, escaped(schedule.name));
  for (std::size_t r = 0; r < cells.texts.size(); ++r) {
    const double y = kTop + static_cast<double>(r) * (kRowHeight + kRowGap);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#444444\">rank {}</text>\n",
                       kLeft - 8, y + kRowHeight / 2 + 4, r);
    for (std::size_t i = 0; i < cells.texts[r].size(); ++i) {
      const auto fault = faults.find({static_cast<int>(r), static_cast<int>(i)});
      const bool faulty = fault != faults.end();
      const std::string_view color = color_of(schedule.ranks[r][i].op);
      const double x = kLeft + cell_width * static_cast<double>(i);
      svg += fmt::format(
          "<g>{}<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" stroke=\"{}\" "
          "stroke-width=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
          "fill=\"{}\">{}</text></g>\n",
          faulty ? "<title>" + escaped(fault->second) + "</title>" : "", x + 1.5, y + 1.5, cell_width - 3,
          kRowHeight - 3, color, faulty ? "#d00000" : "#ffffff", faulty ? 3 : 0, x + cell_width / 2,
          y + kRowHeight / 2 + 4, ink_on(color), escaped(cells.texts[r][i]));
    }
  }
  for (std::size_t i = 0; i < lines_of(violations); ++i) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" fill=\"#d00000\">{}</text>\n", kLeft,
                       grid_bottom + kLineHeight * static_cast<double>(i + 1), escaped(violation_text(violations, i)));
  }
  return svg + "</svg>\n";
}

}}  // namespace plumb::traces
