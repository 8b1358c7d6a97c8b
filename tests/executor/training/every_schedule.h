#pragma once
// A model over data and tensor ranks, under every kind of schedule with slices, sharded state and recomputation, and over
// eight steps of training.

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "tests/executor/small_model.h"

namespace plumb::test {

/// Checks the gradients of 4 micro-batches over two tensor ranks and two replicas, with and without sequence parallelism:
/// within 1e-5 of the largest of each tensor.
inline void check_over_data_and_tensor_ranks(const std::vector<Layer>& model) {
  const ModelValues expected = gradients_of(alone_on_one_rank(model, 4));
  for (const bool sequence_parallel : {false, true}) {
    CAPTURE(sequence_parallel);
    RunSpec spec = spec_over(model, "naive", {.ranks = 1, .microbatches = 2}, {.tensor = 2, .context = 1, .data = 2});
    spec.sequence_parallel = sequence_parallel;
    CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
  }
}

/// Checks the gradients of 8 micro-batches over two stages and two replicas: within 1e-5 of the largest of each tensor.
inline void check_under_schedules(const std::vector<Layer>& model, const std::vector<const char*>& schedules,
                                  const ModelValues& expected) {
  for (const std::string_view schedule : schedules) {
    ScheduleParameters shape{.ranks = 2, .microbatches = 4};
    if (schedule == "interleaved") shape.chunks = 2;
    if (schedule == "seq1f1b") shape.slices = 2;
    for (const Recompute rebuild : {Recompute::kNone, Recompute::kSelective, Recompute::kStage}) {
      CAPTURE(schedule);
      CAPTURE(static_cast<int>(rebuild));
      RunSpec spec = spec_over(model, schedule.data(), shape, {.data = 2}, rebuild == Recompute::kStage ? 1 : 0);
      spec.rebuild = rebuild;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
    }
  }
}

/// Checks that losses fall over eight steps, and that two stages on a grid have those of one rank to 1e-4.
inline void check_losses_fall_alike(const std::vector<Layer>& model, const ProcessGrid& grid) {
  RunSpec alone = alone_on_one_rank(model, 4);
  alone.steps = 8;
  RunSpec divided = spec_over(model, "1f1b", {.ranks = 2, .microbatches = 4}, grid);
  divided.steps = 8;
  const std::vector<double> expected = run(alone).losses, losses = run(divided).losses;
  REQUIRE(losses.size() == 8);
  CHECK(expected.back() < expected.front());
  for (std::size_t step = 0; step < losses.size(); ++step)
    CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-4));
}

}  // namespace plumb::test
