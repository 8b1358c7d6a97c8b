#include "tools/pages/simulation_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/memory/memory_holders.h"
#include "tools/io/version.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/table.h"
#include "traces/idle_causes.h"

namespace plumb { inline namespace tools {
namespace {

std::string verdict_of(const Simulation& simulation, const ReportContext& context, const Plan* plan) {
  std::string text = fmt::format("The step takes {}", duration_text(seconds(simulation.makespan)));
  if (context.tokens_per_step)
    text += fmt::format(", {:.0f} tokens/s", *context.tokens_per_step / seconds(simulation.makespan));
  if (context.mfu_ratio) text += fmt::format(", MFU {:.1f} %", 100 * *context.mfu_ratio);
  text += fmt::format(", bubble {:.1f} %", 100 * simulation.bubble_ratio);
  if (plan != nullptr && context.has_memory) {
    const std::int64_t most = *std::ranges::max_element(simulation.peak_memory_bytes);
    text += fmt::format(", {} of {} of memory on the fullest rank", bytes_text(static_cast<double>(most)),
                        bytes_text(static_cast<double>(plan->cluster.device.memory_bytes)));
  }
  return text + ".";
}

void add_memory(Page& page, const ReportContext& context, const Plan* plan) {
  if (context.memory_peaks.empty()) return;
  std::vector<ChartKind> kinds;
  for (int kind = 0; kind < kMemoryKindCount; ++kind)
    kinds.push_back({.name = std::string(memory_kind_name(static_cast<MemoryKind>(kind)))});
  std::vector<Bar> bars;
  for (std::size_t rank = 0; rank < context.memory_peaks.size(); ++rank) {
    const BytesByKind bytes = bytes_by_kind(context.memory_peaks[rank]);
    bars.push_back({.name = fmt::format("rank {}", rank), .values = {bytes.begin(), bytes.end()}});
  }
  const double limit = plan == nullptr ? 0 : static_cast<double>(plan->cluster.device.memory_bytes);
  add_bars(page, "Memory at the peak of each rank", kinds, bars, "B", limit);
}

void add_idle(Page& page, const Simulation& simulation, const ReportContext& context) {
  if (context.idle.empty()) return;
  std::vector<ChartKind> kinds{{.name = "computing"}};
  for (int cause = 0; cause < kIdleCauseCount; ++cause)
    kinds.push_back({.name = std::string(idle_cause_name(static_cast<IdleCause>(cause)))});
  std::vector<Bar> bars;
  for (std::size_t rank = 0; rank < context.idle.size(); ++rank) {
    Bar& bar = bars.emplace_back(Bar{.name = fmt::format("rank {}", rank)});
    bar.values.push_back(seconds(simulation.busy[rank]));
    for (const SimTime idle : context.idle[rank]) bar.values.push_back(seconds(idle));
  }
  add_bars(page, "Time of each rank by cause", kinds, bars, "s");
}

void add_figures(Page& page, const ReportContext& context) {
  if (context.by_resource.empty()) return;
  std::vector<ResourceSensitivity> sorted = context.by_resource;
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const ResourceSensitivity& by) { return std::abs(by.elasticity); });
  TextTable table{.head = {"1 % more of", "changes the step by"}};
  for (const ResourceSensitivity& by : sorted)
    table.rows.push_back({by.figure, fmt::format("{:+.3f} %", by.elasticity)});
  add_table(page, "What binds the step", table);
}

}  // namespace

Page simulation_page(const std::string& title, const Simulation& simulation, const ReportContext& context,
                     const Plan* plan) {
  Page page{.title = title};
  add_verdict(page, verdict_of(simulation, context, plan), true);
  if (plan != nullptr) add_note(page, interval_text(*plan, simulation));
  add_timeline(page, "Timeline", simulation.timeline);
  add_memory(page, context, plan);
  add_idle(page, simulation, context);
  add_figures(page, context);
  return page;
}

void add_inputs(Page& page, const std::string& command, const Plan* plan) {
  add_command(page, "To repeat it", fmt::format("{}\n{}", command, version_text()));
  if (plan != nullptr) add_command(page, "The plan", to_json(*plan, PLUMB_VERSION).dump(2));
}

}}  // namespace plumb::tools
