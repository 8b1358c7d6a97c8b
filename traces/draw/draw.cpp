#include "traces/draw/draw.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "traces/draw/time_text.h"
#include "traces/statistics.h"

namespace plumb { inline namespace traces {
namespace {

struct Style {
  std::string_view fill;
  std::string_view meaning;
  int background = 0;  ///< one of the 256 ANSI colours; those of later chunks are darker
  int background_of_later_chunks = 0;
};

Style style_of(Op op) {
  switch (op) {
    case Op::kForward:
      return {"░", "forward", 75, 33};
    case Op::kBackward:
      return {"▓", "backward", 114, 71};
    case Op::kInputGrad:
      return {"▒", "input gradient", 114, 71};
    case Op::kWeightGrad:
      return {"=", "weight gradient", 215, 172};
    case Op::kRecompute:
      return {"~", "recompute", 229, 186};
    default:
      return {"#", "optimizer", 174, 174};
  }
}

/// A compute action on its row, measured in columns.
struct Cell {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Action action;
};

/// Maps times to columns: column = time * columns / makespan, to the nearest.
struct Scale {
  SimTime first{0};
  std::int64_t makespan_ps = 1;
  std::int64_t columns = 1;

  std::int64_t column(SimTime time) const {
    const long double along = static_cast<long double>((time - first).count()) * static_cast<long double>(columns);
    return static_cast<std::int64_t>(along / static_cast<long double>(makespan_ps) + 0.5L);
  }
};

std::vector<Span> compute_spans(const RankTimeline& rank) {
  std::vector<Span> spans;
  for (const Span& span : rank.spans) {
    if (is_compute(span.action.op) && span.end > span.start) spans.push_back(span);
  }
  // The two actions of an overlapped pair stand one behind the other.
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) {
    if (!spans[i].action.overlaps_next || spans[i + 1].start != spans[i].start) continue;
    const SimTime middle = spans[i].start + (spans[i].end - spans[i].start) / 2;
    spans[i].end = spans[i + 1].start = middle;
  }
  return spans;
}

/// The facts that labels of cells are made of.
struct Labels {
  bool chunks = false;              ///< a letter says which of the rank's stages it is
  std::vector<int> chunk_of_stage;  ///< [stage] its place among the rank's stages
};

Labels labels_of(const Timeline& timeline) {
  Labels labels;
  std::vector<int> stages_on(timeline.ranks.size(), 0);
  for (const StagePlace& place : timeline.stages) {
    labels.chunk_of_stage.push_back(stages_on[place.rank]++);
    labels.chunks = labels.chunks || stages_on[place.rank] > 1;
  }
  return labels;
}

std::string label_of(const Labels& labels, const Action& action) {
  if (action.microbatch < 0) return "";
  std::string label = std::to_string(action.microbatch);
  if (labels.chunks) label += static_cast<char>('a' + labels.chunk_of_stage[action.stage] % 26);
  if (action.part != 0) label += fmt::format(".{}", action.part);
  return label;
}

/// The columns of the widest label, and the duration of the shortest action that carries one.
struct LabelNeed {
  std::int64_t label_columns = 0;
  SimTime shortest = SimTime::max();
};

LabelNeed label_need(const std::vector<std::vector<Span>>& ranks, const Labels& labels) {
  LabelNeed need;
  for (const auto& spans : ranks) {
    for (const Span& span : spans) {
      const auto columns = static_cast<std::int64_t>(label_of(labels, span.action).size());
      if (columns == 0) continue;
      need.label_columns = std::max(need.label_columns, columns);
      need.shortest = std::min(need.shortest, span.end - span.start);
    }
  }
  return need;
}

/// Returns whole columns for the greatest time of which all starts and ends are multiples, as many as fit and labels
/// can use; otherwise the whole width.
Scale scale_of(const std::vector<std::vector<Span>>& ranks, SimTime first, SimTime makespan, std::int64_t available,
               const LabelNeed& need) {
  Scale scale{.first = first, .makespan_ps = std::max<std::int64_t>(1, makespan.count()), .columns = available};
  std::int64_t unit = makespan.count();
  for (const auto& spans : ranks) {
    for (const Span& span : spans) {
      unit = std::gcd(unit, std::gcd((span.start - first).count(), (span.end - first).count()));
    }
  }
  if (unit <= 0 || makespan.count() / unit > available) return scale;
  const std::int64_t units = makespan.count() / unit;
  std::int64_t columns_of_unit = available / units;
  if (need.label_columns > 0) {
    const std::int64_t shortest_units = need.shortest.count() / unit;
    const std::int64_t wanted = need.label_columns + 2;  // columns of the label, and room to see the fill
    columns_of_unit = std::clamp<std::int64_t>((wanted + shortest_units - 1) / shortest_units, 1, columns_of_unit);
  }
  scale.columns = units * columns_of_unit;
  return scale;
}

/// True if all cells have room for a label; otherwise none has one.
bool labels_fit(const LabelNeed& need, const Scale& scale, std::int64_t fill_columns) {
  if (need.label_columns == 0) return false;
  const long double shortest = static_cast<long double>(need.shortest.count()) *
                               static_cast<long double>(scale.columns) / static_cast<long double>(scale.makespan_ps);
  return static_cast<std::int64_t>(shortest) >= need.label_columns + fill_columns;
}

std::string cell_text(const Cell& cell, const Labels& labels, bool with_label, bool color) {
  const Style style = style_of(cell.action.op);
  const std::int64_t width = cell.end - cell.begin;
  std::string label = with_label ? label_of(labels, cell.action) : "";
  // A label needs a column of fill behind it to say what runs; colour says it anyway.
  if (static_cast<std::int64_t>(label.size()) + (color ? 0 : 1) > width) label.clear();
  std::string text = label;
  for (auto i = static_cast<std::int64_t>(label.size()); i < width; ++i)
    text += color ? std::string_view(" ") : style.fill;
  if (!color) return text;
  const bool later_chunk = labels.chunk_of_stage[cell.action.stage] > 0;
  return fmt::format("\x1b[38;5;16;48;5;{}m{}\x1b[0m",
                     later_chunk ? style.background_of_later_chunks : style.background, text);
}

std::string row_text(const std::vector<Span>& spans, const Scale& scale, const Labels& labels, bool with_labels,
                     bool color) {
  std::string text;
  std::int64_t at = 0;
  for (const Span& span : spans) {
    const Cell cell{
        .begin = std::max(at, scale.column(span.start)), .end = scale.column(span.end), .action = span.action};
    if (cell.end <= cell.begin) continue;
    text.append(static_cast<std::size_t>(cell.begin - at), ' ');
    text += cell_text(cell, labels, with_labels, color);
    at = cell.end;
  }
  return text;
}

/// Returns the meanings of the fills that occur, and the step's figures, in lines of at most `width` columns.
std::string legend(const std::vector<std::vector<Span>>& ranks, const Statistics& statistics, bool color, int width) {
  std::array<bool, kOpCount> occurs{};
  for (const auto& spans : ranks) {
    for (const Span& span : spans) occurs[static_cast<std::size_t>(span.action.op)] = true;
  }
  constexpr std::string_view kGap = "  ";
  std::string text;
  std::size_t columns = 0;  // of the line under way
  const auto append = [&](const std::string& entry, std::size_t entry_columns) {
    const bool fits = columns + kGap.size() + entry_columns <= static_cast<std::size_t>(width);
    if (columns > 0) text += fits ? kGap : "\n";
    columns = (columns > 0 && fits ? columns + kGap.size() : 0) + entry_columns;
    text += entry;
  };
  for (int op = 0; op < kOpCount; ++op) {
    if (!occurs[op]) continue;
    const Style style = style_of(static_cast<Op>(op));
    append(color ? fmt::format("\x1b[48;5;{}m  \x1b[0m {}", style.background, style.meaning)
                 : fmt::format("{0}{0} {1}", style.fill, style.meaning),
           std::string_view("## ").size() + std::string_view(style.meaning).size());
  }
  const std::string makespan = "makespan " + time_text(statistics.makespan);
  const std::string bubble = fmt::format("bubble {:.1f} %", 100 * statistics.bubble_ratio);
  append(makespan, makespan.size());
  append(bubble, bubble.size());
  return text;
}

}  // namespace

std::string draw(const Timeline& timeline, const DrawOptions& options) {
  constexpr int kSmallestWidth = 40;
  const Statistics statistics = statistics_of(timeline);
  Labels labels = labels_of(timeline);
  std::vector<std::vector<Span>> ranks;
  SimTime first = SimTime::max();
  for (const RankTimeline& rank : timeline.ranks) {
    ranks.push_back(compute_spans(rank));
    for (const Span& span : rank.spans) first = std::min(first, span.start);
  }

  const std::size_t digits = std::to_string(timeline.ranks.empty() ? 0 : timeline.ranks.size() - 1).size();
  const auto margin =
      static_cast<std::int64_t>(std::string_view("rank ").size() + digits + std::string_view(" │").size() - 2);
  const std::int64_t available = std::max(kSmallestWidth, options.width) - margin;
  const std::int64_t fill_columns = options.color ? 0 : 1;
  Scale scale = scale_of(ranks, first, statistics.makespan, available, label_need(ranks, labels));
  bool with_labels = labels_fit(label_need(ranks, labels), scale, fill_columns);
  if (!with_labels && labels.chunks) {  // the chunks' letters are left out then
    labels.chunks = false;
    scale = scale_of(ranks, first, statistics.makespan, available, label_need(ranks, labels));
    with_labels = labels_fit(label_need(ranks, labels), scale, fill_columns);
  }

  std::string text = timeline.title + (timeline.source == Timeline::Source::kMeasured ? " (measured)\n" : "\n");
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    text += fmt::format("rank {:>{}} │{}\n", r, digits, row_text(ranks[r], scale, labels, with_labels, options.color));
  }
  return text + legend(ranks, statistics, options.color, std::max(kSmallestWidth, options.width)) + "\n";
}

}}  // namespace plumb::traces
