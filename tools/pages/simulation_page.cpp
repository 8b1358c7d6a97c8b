#include "tools/pages/simulation_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/memory/memory_holders.h"
#include "tools/pages/timeline_block.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/sensitivity_report.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/step_line.h"
#include "tools/reports/time_by_cause.h"

namespace plumb { inline namespace tools {
namespace {

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
  const double limit = plan == nullptr ? 0 : common_memory_limit(plan->cluster);
  add_bars(page, "Memory at the peak of each rank", kinds, bars, "B", limit);
}

/// Returns the most that a rank holds in each of equal parts of the step.
PointSeries memory_curve(const std::string& name, const std::vector<MemorySample>& samples, SimTime makespan) {
  constexpr std::int64_t kParts = 240;
  PointSeries curve{.name = name, .joined = true};
  std::size_t next = 0;
  std::int64_t held = 0;
  for (std::int64_t part = 0; part < kParts; ++part) {
    const SimTime end = makespan / kParts * (part + 1);
    std::int64_t most = held;
    for (; next < samples.size() && (samples[next].time < end || part + 1 == kParts); ++next) {
      held = samples[next].bytes;
      most = std::max(most, held);
    }
    curve.points.push_back({.x = seconds(makespan / kParts * part), .y = static_cast<double>(most)});
  }
  return curve;
}

/// Schedules without bytes count activations, which is no memory to show.
void add_memory_over_time(Page& page, const Simulation& simulation, const ReportContext& context, const Plan* plan) {
  if (context.memory_peaks.empty()) return;
  std::vector<PointSeries> curves;
  const std::vector<RankTimeline>& ranks = simulation.timeline.ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (std::ranges::any_of(ranks[rank].memory, [](const MemorySample& sample) { return sample.bytes > 0; }))
      curves.push_back(memory_curve(fmt::format("rank {}", rank), ranks[rank].memory, simulation.makespan));
  }
  if (curves.empty()) return;
  const double limit = plan == nullptr ? 0 : common_memory_limit(plan->cluster);
  add_points(page, "Memory over time", {.name = "time", .unit = "s"}, {.name = "memory", .unit = "B", .limit = limit},
             curves);
}

void add_time(Page& page, const Simulation& simulation, const ReportContext& context) {
  if (context.idle.empty()) return;
  const TimeByCause time = time_by_cause(simulation.busy, context.idle, context.exposed);
  std::vector<ChartKind> kinds;
  for (const std::string& cause : time.causes) kinds.push_back({.name = cause});
  std::vector<Bar> bars;
  for (std::size_t rank = 0; rank < time.ranks.size(); ++rank)
    bars.push_back({.name = fmt::format("rank {}", rank), .values = time.ranks[rank]});
  add_bars(page, "Time of each rank by cause", kinds, bars, "s");
}

}  // namespace

void add_binding(Page& page, const std::vector<ResourceSensitivity>& by_resource) {
  std::vector<Difference> figures;
  for (const ResourceSensitivity& by : by_size(by_resource))
    figures.push_back({.name = by.figure, .value = by.elasticity});
  add_differences(page, "What binds the step: its change by 1 % more of each figure", "%", figures);
}

void add_simulation(Page& page, const Simulation& simulation, const ReportContext& context, const Plan* plan) {
  add_timeline(page, "Timeline", simulation.timeline);
  add_memory(page, context, plan);
  add_memory_over_time(page, simulation, context, plan);
  add_time(page, simulation, context);
  add_binding(page, context.by_resource);
}

Page simulation_page(const std::string& title, const Simulation& simulation, const ReportContext& context,
                     const Plan* plan) {
  Page page{.title = title};
  add_verdict(page, simulation_verdict(simulation, context, plan), true);
  if (plan != nullptr)
    add_note(page, fmt::format("{}; {}", stack_text(plan->training), interval_text(*plan, simulation)));
  add_simulation(page, simulation, context, plan);
  return page;
}

}}  // namespace plumb::tools
