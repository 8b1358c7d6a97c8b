// Mamba-2's blocks, divided over ranks and cut into slices, against one rank: the gradients of every tensor agree within
// 1e-5 of its largest, and losses within 1e-4.

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/every_schedule.h"

namespace plumb::test {

TEST_CASE("Mamba-2 over data and tensor ranks gives the gradients of one rank") {
  check_over_data_and_tensor_ranks(mamba2_model());
}

TEST_CASE("Mamba-2 goes with every kind of schedule, with slices, sharded state and recomputation") {
  check_under_schedules(mamba2_model(),
                        {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "chimera", "seq1f1b"},
                        gradients_of(alone_on_one_rank(mamba2_model(), 8)));
}

TEST_CASE("slices shorter than the convolution's taps give the gradients of whole sequences") {
  const ModelValues expected = gradients_of(alone_on_one_rank(mamba2_model(), 4));
  for (const int slices : {2, 4, 8}) {
    CAPTURE(slices);
    RunSpec spec = spec_over(mamba2_model(), "seq1f1b", {.ranks = 2, .microbatches = 4, .slices = slices}, {});
    CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
  }
}

TEST_CASE("its losses fall, and are the same on two tensor ranks and on one") {
  check_losses_fall_alike(mamba2_model(), {.tensor = 2});
}

TEST_CASE("layouts that Mamba-2 cannot have are refused with the remedy") {
  RunSpec shared = spec_over(mamba2_model(), "naive", {.ranks = 1, .microbatches = 2}, {.context = 2});
  CHECK_THROWS_WITH_AS(run(shared), doctest::Contains("context ranks do not share it; set context to 1"), SpecError);
  RunSpec divided = spec_over(mamba2_model(), "naive", {.ranks = 1, .microbatches = 2}, {.tensor = 4});
  CHECK_THROWS_WITH_AS(run(divided), doctest::Contains("2 groups cannot be divided over 4 tensor ranks"), SpecError);
  RunSpec odd = alone_on_one_rank(mamba2_model(), 1);
  std::get<Mamba2Mixer>(std::get<TransformerLayer>(odd.stage_layers[0][1]).states).groups = 3;
  CHECK_THROWS_WITH_AS(run(odd), doctest::Contains("groups must divide heads"), SpecError);
}

}  // namespace plumb::test
