// Hybrids of attention and Mamba-2, with an MLP, experts or nothing behind them, divided over ranks, against one rank: the
// gradients of every tensor agree within 1e-5 of its largest, and losses within 1e-4.

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/every_schedule.h"

namespace plumb::test {

TEST_CASE("a hybrid over data and tensor ranks gives the gradients of one rank") {
  check_over_data_and_tensor_ranks(hybrid_model());
}

TEST_CASE("a hybrid over stages, tensor and data ranks at once gives the gradients of one rank") {
  RunSpec spec =
      spec_over(hybrid_model(), "1f1b", {.ranks = 2, .microbatches = 2}, {.tensor = 2, .context = 1, .data = 2});
  CHECK(worst_difference(gradients_of(spec), gradients_of(alone_on_one_rank(hybrid_model(), 4))) <= 1e-5);
}

TEST_CASE("a hybrid goes with every kind of schedule, with sharded state and recomputation") {
  check_under_schedules(hybrid_model(), {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "chimera"},
                        gradients_of(alone_on_one_rank(hybrid_model(), 8)));
}

TEST_CASE("slices of sequences find what attention and states beside each other have left") {
  // The MLP alone knows no slices. With it, the rounding of seven layers in another order comes to 2e-5.
  std::vector<Layer> model = hybrid_model();
  model.erase(model.begin() + 2);
  RunSpec alone = one_rank(model, 4);
  alone.sequence = 8;
  for (const int slices : {2, 4}) {
    CAPTURE(slices);
    RunSpec spec = spec_over(model, "seq1f1b", {.ranks = 2, .microbatches = 4, .slices = slices}, {});
    CHECK(worst_difference(gradients_of(spec), gradients_of(alone)) <= 1e-5);
  }
}

TEST_CASE("a hybrid's losses fall, and are the same on two tensor ranks and on one") {
  check_losses_fall_alike(hybrid_model(), {.tensor = 2});
}

TEST_CASE("a mixer without kernels and a block without parts are refused with the remedy") {
  const auto refused = [](const TransformerLayer& block, const char* says) {
    RunSpec spec = alone_on_one_rank(hybrid_model(), 1);
    spec.stage_layers[0][1] = block;
    CHECK_THROWS_WITH_AS(run(spec), doctest::Contains(says), SpecError);
  };
  refused({.hidden = 16, .states = MambaMixer{.channels = 32, .state_size = 4, .step_rank = 2}},
          "layer 1 needs the kernel selective_scan_forward, which is priced and which Plumb does not run");
  refused({.hidden = 16, .states = DeltaNetMixer{.key_heads = 2, .value_heads = 4, .key_size = 4, .value_size = 4}},
          "delta_rule_forward");
  TransformerLayer gated = llama_block();
  gated.output_gate = true;
  refused(gated, "gate_forward");
  refused({.hidden = 16}, "layer 1 mixes no tokens and feeds nothing forward");
}

}  // namespace plumb::test
