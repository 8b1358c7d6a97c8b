#include <cstdint>
#include <vector>

#include "schedules/generators/generators.h"
#include "schedules/generators/groups.h"
#include "schedules/generators/phases.h"
#include "schedules/generators/slices.h"

namespace plumb { inline namespace schedules {
namespace {

/// Micro-batches whose slices a rank's chunks take in turn: one, or as many as have p slices together.
struct MicrobatchGroup {
  int first = 0;
  int size = 1;
};

/// Returns the forwards of a group on a rank: `turns` has how many slices of each micro-batch pass through a chunk
/// before the next chunk's turn.
std::vector<Action> forwards_of(const MicrobatchGroup& group, const std::vector<int>& stages,
                                const std::vector<int>& turns) {
  std::vector<Action> forwards;
  int first = 0;
  for (const int turn : turns) {
    for (const int stage : stages) {
      for (int i = group.first; i < group.first + group.size; ++i) {
        for (int slice = first; slice < first + turn; ++slice) {
          forwards.push_back(compute_action(Op::kForward, stage, i));
          forwards.back().part = static_cast<std::int16_t>(slice);
        }
      }
    }
    first += turn;
  }
  return forwards;
}

}  // namespace

Schedule slimpipe_schedule(const ScheduleParameters& parameters) {
  require_numbered_slices("slimpipe", parameters.slices);
  const int p = parameters.ranks;
  const int v = parameters.chunks;
  const int k = parameters.slices;
  const std::vector<int> turns = group_sizes(k, p);
  const std::vector<int> groups = group_sizes(parameters.microbatches, (p + k - 1) / k);
  Schedule schedule{.name = "slimpipe", .microbatches = parameters.microbatches, .stages = loop_placement(p, p * v)};
  for (int r = 0; r < p; ++r) {
    const std::vector<int> stages = looped_stages(r, p, v);
    std::vector<Action> forwards, backwards;
    MicrobatchGroup group;
    for (const int size : groups) {
      group.size = size;
      const std::vector<Action> of_group = forwards_of(group, stages, turns);
      forwards.insert(forwards.end(), of_group.begin(), of_group.end());
      // The slices that came last go back first, so that their keys and values make room for the next group.
      for (auto forward = of_group.rbegin(); forward != of_group.rend(); ++forward) {
        backwards.push_back(*forward);
        backwards.back().op = Op::kBackward;
      }
      group.first += size;
    }
    const int warmup = 2 * (p - 1 - r) + v * k * groups.front() - 1;
    schedule.ranks.push_back(one_forward_one_backward(forwards, backwards, warmup));
  }
  return schedule;
}

}}  // namespace plumb::schedules
