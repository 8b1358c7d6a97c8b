#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/bounds.h"
#include "tools/console.h"
#include "tools/plan_input.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace plumb {
namespace {

using nlohmann::ordered_json;

struct RankBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t peak = 0;
  SimTime peak_at{0};

  /// What comes and goes: activations, workspace, gathered parameters, further versions of the weights.
  std::int64_t transient() const { return peak - parameters - gradients - optimizer; }
};

std::vector<RankBytes> bytes_by_rank(const Predicted& predicted) {
  std::vector<RankBytes> ranks(predicted.lowered.ranks.size());
  for (std::size_t s = 0; s < predicted.lowered.stages.size(); ++s) {
    const StageMemory& memory = predicted.priced.costs.stages[s].memory;
    RankBytes& rank = ranks[predicted.lowered.stages[s].rank];
    rank.parameters += memory.parameter_bytes;
    rank.gradients += memory.gradient_bytes;
    rank.optimizer += memory.optimizer_bytes;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const MemorySample& sample : predicted.simulation.timeline.ranks[r].memory) {
      if (sample.bytes > ranks[r].peak) {
        ranks[r].peak = sample.bytes;
        ranks[r].peak_at = sample.time;
      }
    }
  }
  return ranks;
}

}  // namespace

int memory_verb(const MemoryArguments& arguments) {
  const Plan plan = plan_input(arguments.plan);
  const Evaluation evaluation = evaluate(plan);
  if (!evaluation.predicted) {
    print_note("plumb: " + evaluation.infeasible);
    return kInfeasible;
  }
  const DeviceSpec& device = plan.cluster.device;
  const std::vector<RankBytes> ranks = bytes_by_rank(*evaluation.predicted);
  const std::int64_t available = device.memory_bytes - device.reserved_bytes;

  ordered_json list = ordered_json::array();
  TextTable table{
      .head = {"rank", "parameters", "gradients", "optimizer", "activations and workspace", "peak", "at", "left"}};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankBytes& rank = ranks[r];
    ordered_json over_time = ordered_json::array();
    for (const MemorySample& sample : evaluation.predicted->simulation.timeline.ranks[r].memory) {
      over_time.push_back({to_seconds(sample.time).count(), sample.bytes});
    }
    list.push_back({{"rank", r},
                    {"parameter_bytes", rank.parameters},
                    {"gradient_bytes", rank.gradients},
                    {"optimizer_bytes", rank.optimizer},
                    {"transient_bytes_at_peak", rank.transient()},
                    {"peak_bytes", rank.peak},
                    {"peak_at_s", to_seconds(rank.peak_at).count()},
                    {"left_bytes", available - rank.peak},
                    {"bytes_over_time", over_time}});
    const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    table.rows.push_back({std::to_string(r), text(rank.parameters), text(rank.gradients), text(rank.optimizer),
                          text(rank.transient()), text(rank.peak), duration_text(to_seconds(rank.peak_at).count()),
                          text(available - rank.peak)});
  }
  if (arguments.json) {
    print_answer(
        ordered_json{{"device_bytes", device.memory_bytes}, {"reserved_bytes", device.reserved_bytes}, {"ranks", list}}
            .dump(2) +
        "\n");
  } else {
    print_answer(fmt::format("{}, {}: of {} on a device, {} are reserved by its driver and runtime\n\n{}",
                             plan.model.name, to_text(plan.layout),
                             bytes_text(static_cast<double>(device.memory_bytes)),
                             bytes_text(static_cast<double>(device.reserved_bytes)), to_text(table)));
  }
  if (evaluation.infeasible.empty()) return kDone;
  print_note("plumb: " + evaluation.infeasible);
  return kInfeasible;
}

}  // namespace plumb
