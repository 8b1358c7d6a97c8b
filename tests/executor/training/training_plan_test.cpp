#include "executor/training/training_plan.h"

#include <functional>

#include <doctest/doctest.h>

#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("each thing that changes what ranks compute or send changes the fingerprint") {
  const RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  CHECK(fingerprint(spec) == fingerprint(RunSpec(spec)));
  const std::vector<std::function<void(RunSpec&)>> changes = {
      [](RunSpec& s) { s.schedule.ranks[0].pop_back(); },
      [](RunSpec& s) { s.grid.data = 2; },
      [](RunSpec& s) { s.sequence_parallel = true; },
      [](RunSpec& s) { s.sends = Sends::kRendezvous; },
      [](RunSpec& s) { s.rebuild = Recompute::kStage; },
      [](RunSpec& s) { s.microbatch = 3; },
      [](RunSpec& s) { s.sequence = 5; },
      [](RunSpec& s) { s.optimizer = Sgd{}; },
      [](RunSpec& s) { s.half = HalfFormat::kBf16; },
      [](RunSpec& s) { s.clip_norm = 1; },
      [](RunSpec& s) { s.zero = 1; },
      [](RunSpec& s) { s.seed = 2; },
      [](RunSpec& s) { s.text[17] = 1; },
      [](RunSpec& s) { s.steps = 2; },
      [](RunSpec& s) { s.source = "another plan"; },
      [](RunSpec& s) { std::get<TransformerLayer>(s.stage_layers[0].back()).ffn = 32; },
      [](RunSpec& s) {
        s.stage_layers[1].insert(s.stage_layers[1].begin(), s.stage_layers[0].back());
        s.stage_layers[0].pop_back();
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    RunSpec changed = spec;
    changes[i](changed);
    CHECK(fingerprint(changed) != fingerprint(spec));
  }
}

TEST_CASE("micro-batches belong to the optimizer step behind them") {
  RunSpec spec = spec_of(llama_model(), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}));
  const TrainingPlan plan = plan_training(spec);
  CHECK(plan.batches.batch_of == std::vector<int>{0, 1, 2, 3});
  CHECK(plan.batches.sizes == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(batch_tokens(spec, plan, 0) == spec.microbatch * spec.sequence);
}

}  // namespace plumb::test
