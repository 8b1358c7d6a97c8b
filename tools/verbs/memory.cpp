#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/program/device/plan_device.h"
#include "planner/evaluate/played_memory.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/search/bounds.h"
#include "planner/search/evaluate_plan.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/short_layout.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/forms/json_text.h"
#include "simulator/memory/memory_holders.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/reports/arena_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/memory_report.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/step_line.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// The allocator of the frameworks, on one rank.
struct PlayedByRank {
  PlayedMemory fixed;
  PlayedMemory expandable;
};

/// [rank]; empty for Plumb's own executor, which has an allocator of its own.
std::vector<PlayedByRank> played_by_rank(const Plan& plan, const Evaluation& evaluation) {
  using enum CachingAllocator::Segments;
  std::vector<PlayedByRank> played;
  if (!plan.training.stack) return played;
  const std::vector<PlayedMemory> fixed = played_memory(plan.training, evaluation, kFixed);
  const std::vector<PlayedMemory> expandable = played_memory(plan.training, evaluation, kExpandable);
  for (std::size_t rank = 0; rank < fixed.size(); ++rank) played.push_back({fixed[rank], expandable[rank]});
  return played;
}

ordered_json played_json(const PlayedByRank& played) {
  return {{"fixed_segments_share", played.fixed.reserved_share()},
          {"expandable_segments_share", played.expandable.reserved_share()}};
}

std::string played_text(const PlayedByRank& played, const MemoryPeak& peak) {
  const auto reserved = [&](const PlayedMemory& memory) {
    return bytes_text(memory.reserved_share() * static_cast<double>(peak.bytes));
  };
  return fmt::format(
      "PyTorch's allocator, played in this order, reserves {} for that peak, and {} with expandable segments\n",
      reserved(played.fixed), reserved(played.expandable));
}

/// Returns one rank's peak, the bytes that it always holds and those that come and go, and its bytes over time, in all
/// and by kind.
ordered_json rank_json(std::size_t rank, const MemoryPeak& peak, const RankTimeline& timeline,
                       std::int64_t available_bytes) {
  const BytesByKind bytes = bytes_by_kind(peak);
  const auto of = [&bytes](MemoryKind kind) { return bytes[static_cast<std::size_t>(kind)]; };
  const std::int64_t always = of(MemoryKind::kParameters) + of(MemoryKind::kGradients) + of(MemoryKind::kOptimizer);
  ordered_json over_time = ordered_json::array();
  for (const MemorySample& sample : timeline.memory)
    over_time.push_back({to_seconds(sample.time).count(), sample.bytes});
  ordered_json json{{"rank", rank},
                    {"parameter_bytes", of(MemoryKind::kParameters)},
                    {"gradient_bytes", of(MemoryKind::kGradients)},
                    {"optimizer_bytes", of(MemoryKind::kOptimizer)},
                    {"transient_bytes_at_peak", peak.bytes - always}};
  json.update(memory_peak_json(peak));
  json["left_bytes"] = available_bytes - peak.bytes;
  json["bytes_over_time"] = std::move(over_time);
  json["bytes_over_time_by_kind"] = memory_over_time_json(timeline.memory_by_kind);
  return json;
}

/// Returns, for each stage, the bytes that the slices of a micro-batch keep of its sequences; zeros if micro-batches
/// are not sliced.
std::vector<DeviceStageBytes> stage_bytes(const Plan& plan, const Evaluation& evaluation) {
  const Schedule& schedule = evaluation.lowered;
  std::vector<DeviceStageBytes> bytes(schedule.stages.size());
  if (ActionTable(schedule).parts() == 1) return bytes;
  const LayerWork work = work_of(plan.training, plan.layout);
  for (std::size_t stage = 0; stage < bytes.size(); ++stage)
    for (const Layer& layer : evaluation.layers[static_cast<std::size_t>(schedule.stages[stage].model_part)]) {
      const SequenceBytes own =
          sequence_bytes(layer_program(layer, work, Machine::kDevice), bytes_per_element(plan.training.precision));
      bytes[stage].sequences += own.kept;
      bytes[stage].sequence_gradients += own.gradients;
    }
  return bytes;
}

int print_memory(const Plan& plan, const MemoryArguments& arguments) {
  const Evaluation evaluation = evaluate(plan);
  if (!evaluation.exists) {
    print_note("plumb: " + evaluation.infeasible);
    return kInfeasible;
  }
  const Timeline& timeline = evaluation.simulation.timeline;
  const std::vector<MemoryPeak> peaks = memory_peaks(evaluation.lowered, evaluation.costs, timeline);
  const std::vector<PlayedByRank> played = played_by_rank(plan, evaluation);
  std::optional<DeviceProgram> program;
  if (arguments.arena)
    program =
        plan_device(evaluation.lowered, evaluation.costs, false, DeviceWaits::kNeeded, stage_bytes(plan, evaluation));

  if (arguments.json) {
    ordered_json list = ordered_json::array();
    for (std::size_t r = 0; r < peaks.size(); ++r) {
      const DeviceSpec& own = device_of_rank(plan.cluster, plan.layout, static_cast<int>(r));
      list.push_back(rank_json(r, peaks[r], timeline.ranks[r], own.memory_bytes - own.reserved_bytes));
      list.back()["reserved_by_allocator"] = played.empty() ? ordered_json() : played_json(played[r]);
    }
    ordered_json answer{{"device_bytes", plan.cluster.device.memory_bytes},
                        {"reserved_bytes", plan.cluster.device.reserved_bytes},
                        {"ranks", list}};
    add_stack(answer, plan.training);
    answer.update(interval_json(plan, evaluation.simulation));
    answer["arena"] = program ? arena_json(*program) : ordered_json();
    print_answer(json_answer(answer));
  } else {
    constexpr std::size_t kMostHolders = 12;
    const HeldMemory tightest = tightest_memory(plan, evaluation.simulation.peak_memory_bytes);
    const std::size_t rank = tightest.rank;
    const MemoryPeak& fullest = peaks[rank];
    const DeviceSpec& device = device_of_rank(plan.cluster, plan.layout, static_cast<int>(rank));
    const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    print_text(fmt::format("{} on {}:{}, {}: rank {} holds most, {}\n", plan.model.name, plan.cluster.name,
                           plan.cluster.devices, short_text(plan.layout), rank,
                           memory_text(static_cast<double>(fullest.bytes), tightest.limit)));
    print_text(fmt::format("{}; {}\nof {} on a device, {} are reserved by its driver and runtime\n",
                           stack_text(plan.training), interval_text(plan, evaluation.simulation),
                           text(device.memory_bytes), text(device.reserved_bytes)));
    if (!played.empty()) print_text(played_text(played[rank], fullest));
    print_text(fmt::format("\n{}\nat the peak of rank {} are held by\n{}", memory_peaks_text(peaks), rank,
                           memory_holders_text(fullest, kMostHolders)));
    if (program) print_text("\n" + arena_text(*program));
  }
  if (evaluation.infeasible.empty()) return kDone;
  print_note("plumb: " + evaluation.infeasible);
  return kInfeasible;
}

}  // namespace

int memory_verb(const MemoryArguments& arguments) {
  const AskedPlan asked = asked_plan(arguments.plan, arguments.question);
  if (asked.plan) return print_memory(*asked.plan, arguments);
  print_note("plumb: " + asked.infeasible);
  return kInfeasible;
}

}}  // namespace plumb::tools
