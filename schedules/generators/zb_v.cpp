#include <algorithm>

#include "schedules/generators/chunk_cursors.h"
#include "schedules/generators/first_microbatches.h"
#include "schedules/generators/fitted.h"
#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns all actions of a rank for n >= 2p-1 micro-batches. Chunk 0 goes down the V, chunk 1 comes up.
std::vector<Action> rank_actions(int p, int r, int n) {
  ChunkCursors rank({.stage = r}, {.stage = 2 * p - 1 - r});
  const auto first_chunk_back = [&rank] { rank.input_grad(0), rank.weight_grad(0); };
  const auto second_chunk_through = [&rank] { rank.forward(1), rank.input_grad(1), rank.weight_grad(1); };

  // 1. Forwards run ahead, until the first micro-batch has come back up the V.
  for (int i = 0; i < 2 * (p - r) - 1; ++i) rank.forward(0);
  // 2. Both chunks run forwards, until the first gradient arrives.
  for (int i = 0; i < r; ++i) rank.forward(1), rank.forward(0);
  // 3. Chunk 1 goes there and back, until chunk 0's first gradient arrives.
  for (int i = 0; i < p - r; ++i) second_chunk_through();
  // 4. The steady state; it goes on without chunk 0's forwards when they are used up.
  while (rank.forwards(1) < n) {
    if (rank.forwards(0) < n) rank.forward(0);
    first_chunk_back();
    second_chunk_through();
  }
  // 5. The actions that others wait for go first: weight gradients are put off, and fill the gaps that the drain
  // leaves.
  for (int i = 0; i < r; ++i) rank.input_grad(0), rank.input_grad(1);
  for (int i = 0; i < p - r; ++i) rank.input_grad(0), rank.weight_grad(0);
  // 6. The weight gradients put off run.
  while (rank.pending(1) > 0) rank.weight_grad(1);
  while (rank.pending(0) > 0) rank.weight_grad(0);
  return rank.take();
}

}  // namespace

Schedule zb_v_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "zb-v", .microbatches = m, .stages = snake_placement(p, 2 * p)};
  for (int r = 0; r < p; ++r) {
    schedule.ranks.push_back(first_microbatches(rank_actions(p, r, std::max(2 * p - 1, m)), m));
  }
  return has_equal_costs(parameters, 2 * p) ? schedule : fitted({schedule}, parameters, 2 * p);
}

}}  // namespace plumb::schedules
