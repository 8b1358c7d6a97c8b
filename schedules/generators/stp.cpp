// The steps are those of the authors' code, which takes m >= 3p-1 micro-batches. Its pairs are of two passes of one
// chunk, F&F, F&I and F&B, but for F&W, whose W is the oldest that waits. The layers of a pair are braided, so that
// the all-reduces of one stand beside the products of the other. The authors' table has a bubble of (p-1)(F+I-W) of a
// chunk, 2p+1 exchanges that nothing hides, and 3p activations.
//
// Derived here: the order for fewer micro-batches than 3p-1. The two forwards of F&F are braided as well, as 2p+1
// implies; the code runs one behind the other. Left out: the variant that hands activations to the host.

#include <algorithm>

#include "schedules/generators/chunk_cursors.h"
#include "schedules/generators/first_microbatches.h"
#include "schedules/generators/generators.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the list of rank r for n >= 3p-1 micro-batches. Its chunk 0 is on the way down the V, chunk 1 on the way up.
std::vector<Action> braided_steps(int p, int r, int n) {
  ChunkCursors rank({.stage = r}, {.stage = 2 * p - 1 - r});
  const int inner = p - 1 - r;  // ranks between this one and the turn

  // 1. Forwards run ahead; then those of both chunks alternate.
  for (int i = 0; i < 2 * inner; ++i) rank.forward(0);
  for (int i = 0; i < r + 1; ++i) rank.forward(0), rank.forward(1);
  // 2. Until the first gradient comes back, more forwards of chunk 0 run, two by two.
  if ((r + 1) % 2 == 1) rank.forward(0);
  for (int i = 0; i < (r + 1) / 2; ++i) rank.forward(0), rank.pair_with_next(), rank.forward(0);
  // 3. The first gradients leave early, and their weight gradients hide the exchanges of forwards.
  for (int i = 0; i < inner; ++i) {
    rank.forward(1), rank.pair_with_next(), rank.input_grad(1);
    rank.forward(0), rank.pair_with_next(), rank.weight_grad();
  }
  // 4. The steady state: each chunk's forward and backward are braided, by turns. The last r backwards are split.
  const int whole = 2 * (n - 3 * p + 1) + 1 + r;
  for (int i = 0; i < whole + r; ++i) {
    const int chunk = 1 - i % 2;
    rank.forward(chunk), rank.pair_with_next();
    if (i < whole) {
      rank.backward(chunk);
    } else {
      rank.input_grad(chunk);
    }
  }
  // 5. Chunk 0's forwards are used up; those of chunk 1 that remain are braided with its input gradients.
  for (int i = 0; i < 2 * p - 2 - r; ++i) rank.backward(0), rank.forward(1), rank.pair_with_next(), rank.input_grad(1);
  // 6. Backwards drain, and the weight gradients put off fill the gaps, oldest first.
  for (int i = 0; i < r + 1; ++i) rank.backward(0), rank.backward(1);
  rank.backward(0);
  for (int i = 0; i < inner; ++i) rank.weight_grad(), rank.weight_grad(), rank.backward(0);
  for (int i = 0; i < 2 * r; ++i) rank.weight_grad();
  return rank.take();
}

}  // namespace

Schedule stp_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = "stp", .microbatches = m, .stages = snake_placement(p, 2 * p)};
  for (int r = 0; r < p; ++r)
    schedule.ranks.push_back(first_microbatches(braided_steps(p, r, std::max(3 * p - 1, m)), m));
  return schedule;
}

}}  // namespace plumb::schedules
