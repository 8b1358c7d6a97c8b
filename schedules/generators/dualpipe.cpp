#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/chunk_cursors.h"
#include "schedules/generators/first_microbatches.h"
#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the eight steps of a rank at distance `h` of `half` from the end where its chunk 0's micro-batches enter and
/// those of chunk 1 leave. Each chunk takes n >= 2 half micro-batches.
std::vector<Action> eight_steps(int half, int h, int n, const ChunkCursors::Chunk& chunk0,
                                const ChunkCursors::Chunk& chunk1) {
  ChunkCursors rank(chunk0, chunk1);
  const int inner = half - 1 - h;  // ranks between this one and the turn

  // 1. Forwards run ahead.
  for (int i = 0; i < 2 * inner; ++i) rank.forward(0);
  // 2. Forwards of both chunks alternate.
  for (int i = 0; i < h + 1; ++i) rank.forward(0), rank.forward(1);
  // 3. Chunk 1's first backwards are split so that their input gradients leave early.
  for (int i = 0; i < inner; ++i) rank.input_grad(1), rank.weight_grad(), rank.forward(1);
  // 4. The steady state: each chunk's forward overlaps the other's backward. At the turn the first backward belongs to
  // the micro-batch that has just run forward and overlaps nothing.
  for (int i = 0; i < n - 2 * half + h + 1; ++i) {
    if (i == 0 && inner == 0) {
      rank.forward(0), rank.backward(1);
    } else {
      rank.overlapped(0, 1);
    }
    rank.overlapped(1, 0);
  }
  // 5. Chunk 0's forwards are used up.
  for (int i = 0; i < inner; ++i) rank.backward(1), rank.overlapped(1, 0);
  // 6. The drain begins; from its middle on weight gradients are put off.
  for (int i = 0; i < 2 * (h + 1); ++i) {
    const int chunk = 1 - i % 2;
    if (i < h + 1) {
      rank.backward(chunk);
    } else {
      rank.input_grad(chunk);
    }
  }
  // 7. and 8. The weight gradients put off fill the gaps, oldest first.
  for (int i = 0; i < inner; ++i) rank.weight_grad(), rank.input_grad(0);
  for (int i = 0; i < h + 1; ++i) rank.weight_grad();
  return rank.take();
}

}  // namespace

Schedule dualpipev_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "dualpipev", .microbatches = m, .stages = snake_placement(p, 2 * p)};
  for (int r = 0; r < p; ++r) {
    const auto actions = eight_steps(p, r, std::max(2 * p, m), {.stage = r}, {.stage = 2 * p - 1 - r});
    schedule.ranks.push_back(first_microbatches(actions, m));
  }
  return schedule;
}

Schedule dualpipe_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  if (p % 2 != 0 || m < 2) {
    throw ScheduleError(fmt::format(
        "dualpipe demands p even, m >= 2, not {} ranks and {} micro-batches: change them, or use dualpipev, "
        "which takes any",
        p, m));
  }
  // Each lane runs n micro-batches, without the excess ones. Lane 0 has the odd one.
  const int n = std::max(p, (m + 1) / 2);
  const int of_lane_0 = (m + 1) / 2;
  std::vector<int> numbers(static_cast<std::size_t>(2 * n), -1);
  for (int i = 0; i < of_lane_0; ++i) numbers[i] = i;
  for (int i = of_lane_0; i < m; ++i) numbers[n + i - of_lane_0] = i;
  Schedule schedule{.name = "dualpipe", .microbatches = m, .stages = bidirectional_placement(p)};
  for (int r = 0; r < p; ++r) {
    // Lane 0 takes the first half of the micro-batches and enters at rank 0; lane 1 takes the second and enters at rank
    // p-1.
    const ChunkCursors::Chunk down{.stage = r, .first_microbatch = 0};
    const ChunkCursors::Chunk up{.stage = 2 * p - 1 - r, .first_microbatch = n};
    const bool near_start = r < p / 2;
    const auto actions = eight_steps(p / 2, std::min(r, p - 1 - r), n, near_start ? down : up, near_start ? up : down);
    schedule.ranks.push_back(renumbered_microbatches(actions, numbers));
  }
  return schedule;
}

}}  // namespace plumb::schedules
