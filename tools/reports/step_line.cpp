#include "tools/reports/step_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/spec/cluster_sites.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

std::string memory_text(double peak_bytes, double limit_bytes) {
  std::string held = bytes_text(peak_bytes);
  const std::string of = bytes_text(limit_bytes);
  const std::string unit = of.substr(of.find(' '));
  if (held.ends_with(unit)) held.resize(held.size() - unit.size());
  return peak_bytes <= limit_bytes
             ? fmt::format("{} of {} ({:.0f} % free)", held, of, 100 * (1 - peak_bytes / limit_bytes))
             : fmt::format("{} of {} (too large by {})", held, of, bytes_text(peak_bytes - limit_bytes));
}

std::string to_text(const StepLine& line) {
  std::string text = line.time;
  if (line.tokens_per_s)
    text += fmt::format(", {:.0f} tokens/s", *line.tokens_per_s);
  else if (line.samples_per_s)
    text += fmt::format(", {:.0f} samples/s", *line.samples_per_s);
  if (line.mfu_ratio) text += fmt::format(", MFU {:.1f} %", 100 * *line.mfu_ratio);
  text += fmt::format(", bubble {:.1f} %", 100 * line.bubble_ratio);
  return line.peak_bytes ? text + ", " + memory_text(*line.peak_bytes, line.limit_bytes) : text;
}

StepLine step_line(const Plan& plan, const StepSums& step, const StepRates& rates) {
  const bool in_tokens = rates.tokens_per_second > 0;
  const HeldMemory tightest = tightest_memory(plan, step.peak_memory_bytes);
  return {.time = duration_text(step_time(step).count()) + " a step",
          .tokens_per_s = in_tokens ? std::optional(rates.tokens_per_second) : std::nullopt,
          .samples_per_s = rates.samples_per_second,
          .mfu_ratio = rates.mfu_ratio,
          .bubble_ratio = step.bubble_ratio,
          .peak_bytes = tightest.peak,
          .limit_bytes = tightest.limit};
}

HeldMemory tightest_memory(const Plan& plan, const std::vector<std::int64_t>& peak_bytes) {
  HeldMemory tightest;
  for (std::size_t rank = 0; rank < peak_bytes.size(); ++rank) {
    const HeldMemory held{
        .rank = rank,
        .peak = static_cast<double>(peak_bytes[rank]),
        .limit = memory_for_tensors(device_of_rank(plan.cluster, plan.layout, static_cast<int>(rank)))};
    if (rank == 0 || held.peak * tightest.limit > tightest.peak * held.limit) tightest = held;
  }
  return tightest;
}

double common_memory_limit(const ClusterSpec& cluster) {
  const auto as_first = [&](const ClusterSpec& site) {
    return memory_for_tensors(site.device) == memory_for_tensors(cluster.device);
  };
  return std::ranges::all_of(cluster.further_sites, as_first) ? memory_for_tensors(cluster.device) : 0;
}

double memory_for_tensors(const DeviceSpec& device) {
  return static_cast<double>(device.memory_bytes - device.reserved_bytes);
}

}}  // namespace plumb::tools
