// Decoder blocks on a device, beside the cpu backend's, whose branches both read the block's input (GPT-NeoX, Falcon).

#include <doctest/doctest.h>

#include <vector>

#include "executor/run.h"
#include "tests/executor/device/host_run.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

RunSpec branching(const std::vector<Layer>& model, const char* name) {
  RunSpec spec = spec_of(with_parallel_residuals(model), make_schedule(name, {.ranks = 2, .microbatches = 4}));
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

}  // namespace

TEST_CASE("parallel residuals on a device give the cpu's losses and gradients, with dropout and experts too") {
  for (const std::vector<Layer>& model :
       {untied_gpt_model(), llama_model(), with_dropout(untied_gpt_model()), mixtral_model()})
    for (const char* name : {"1f1b", "zb-h1"}) check_beside_cpu(branching(model, name));
  RunSpec spec = branching(untied_gpt_model(), "1f1b");
  spec.half = HalfFormat::kBf16;
  check_beside_cpu(spec, 2e-2);
}

TEST_CASE("tensor ranks with parallel residuals give the cpu's gradients, with their rows divided and without") {
  for (const bool sequence_parallel : {false, true}) {
    RunSpec spec = branching(untied_gpt_model(), "1f1b");
    spec.grid.tensor = 2;
    spec.sequence_parallel = sequence_parallel;
    check_beside_cpu(spec);
  }
}

TEST_CASE("parallel residuals have the same bits in any order that streams allow, and rebuilt") {
  RunSpec spec = branching(llama_model(), "zb-h1");
  const RunResult kept = on_host(spec);
  CHECK(on_host(spec, 3).weights == kept.weights);
  CHECK(on_host(branching(llama_model(), "gpipe")).weights == kept.weights);
  for (const Recompute what : {Recompute::kSelective, Recompute::kFull, Recompute::kStage}) {
    spec.rebuild = what;
    CHECK(on_host(spec).weights == kept.weights);
  }
}

}  // namespace plumb::test
