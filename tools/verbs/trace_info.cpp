#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/json_text.h"
#include "schedules/time.h"
#include "tools/inputs/trace_input.h"
#include "tools/io/console.h"
#include "tools/reports/idle_report.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"
#include "traces/statistics.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

void print_ours(const Timeline& timeline, const TraceArguments& arguments) {
  const Statistics statistics = statistics_of(timeline);
  const std::string_view source = timeline.source == Timeline::Source::kPredicted ? "predicted" : "measured";
  const std::vector<IdleByCause> idle = idle_by_cause(timeline);
  ordered_json ranks = ordered_json::array();
  TextTable by_rank{.head = {"rank", "first start", "last end", "busy", "idle", "peak memory"}};
  for (std::size_t r = 0; r < statistics.ranks.size(); ++r) {
    const RankStatistics& rank = statistics.ranks[r];
    const bool has_memory = !timeline.ranks[r].memory.empty();
    ranks.push_back({{"rank", r},
                     {"first_start_s", seconds(rank.first_start)},
                     {"last_end_s", seconds(rank.last_end)},
                     {"busy_s", seconds(rank.busy)},
                     {"idle_s", seconds(rank.idle)},
                     {"peak_memory_bytes", has_memory ? ordered_json(rank.peak_memory_bytes) : ordered_json(nullptr)},
                     {"idle_by_cause", idle_json(idle[r])}});
    by_rank.rows.push_back({std::to_string(r), duration_text(seconds(rank.first_start)),
                            duration_text(seconds(rank.last_end)), duration_text(seconds(rank.busy)),
                            duration_text(seconds(rank.idle)),
                            has_memory ? bytes_text(static_cast<double>(rank.peak_memory_bytes)) : "-"});
  }
  ordered_json ops = ordered_json::object();
  TextTable by_op{.head = {"operation", "count", "total", "mean"}};
  for (int i = 0; i < kOpCount; ++i) {
    const OpTotal& total = statistics.ops[static_cast<std::size_t>(i)];
    if (total.count == 0) continue;
    const std::string name(op_name(static_cast<Op>(i)));
    ops[name] = {{"count", total.count}, {"total_s", total.total.count()}};
    by_op.rows.push_back({name, std::to_string(total.count), duration_text(total.total.count()),
                          duration_text(total.total.count() / static_cast<double>(total.count))});
  }
  if (arguments.json) {
    print_answer(json_answer(ordered_json{{"file", arguments.file},
                                          {"title", timeline.title},
                                          {"source", source},
                                          {"makespan_s", seconds(statistics.makespan)},
                                          {"bubble_ratio", statistics.bubble_ratio},
                                          {"span_bubble_ratio", statistics.span_bubble_ratio},
                                          {"ranks", ranks},
                                          {"ops", ops}}));
    return;
  }
  print_text(fmt::format(
      "{} ({}): {} ranks, {} micro-batches, makespan {}, bubble {:.2f} % (span {:.2f} %)\n\n{}\n{}\n{}", timeline.title,
      source, timeline.ranks.size(), timeline.microbatches, duration_text(seconds(statistics.makespan)),
      100 * statistics.bubble_ratio, 100 * statistics.span_bubble_ratio, to_text(by_rank),
      idle_text(idle, [](SimTime time) { return duration_text(seconds(time)); }), to_text(by_op)));
}

/// Prints the rows of another program's trace, and the spans in each.
void print_foreign(const std::vector<ForeignRow>& rows, const TraceArguments& arguments) {
  ordered_json list = ordered_json::array();
  TextTable table{.head = {"process", "thread", "spans", "first start", "last end", "total"}};
  for (const ForeignRow& row : rows) {
    SimTime first = SimTime::max();
    SimTime last{0};
    SimTime total{0};
    for (const ForeignSpan& span : row.spans) {
      first = std::min(first, span.start);
      last = std::max(last, span.end);
      total += span.end - span.start;
    }
    if (row.spans.empty()) first = SimTime{0};
    list.push_back({{"process", row.process},
                    {"thread", row.thread},
                    {"spans", row.spans.size()},
                    {"first_start_s", seconds(first)},
                    {"last_end_s", seconds(last)},
                    {"total_s", seconds(total)}});
    table.rows.push_back({row.process, row.thread, std::to_string(row.spans.size()), duration_text(seconds(first)),
                          duration_text(seconds(last)), duration_text(seconds(total))});
  }
  arguments.json ? print_answer(json_answer(ordered_json{{"file", arguments.file}, {"rows", list}}))
                 : print_text("a trace of another program:\n\n" + to_text(table));
}

}  // namespace

int trace_info_verb(const TraceArguments& arguments) {
  const ChromeTrace trace = trace_input(arguments.file);
  if (trace.timeline) {
    print_ours(*trace.timeline, arguments);
  } else {
    print_foreign(trace.rows, arguments);
  }
  return kDone;
}

}}  // namespace plumb::tools
