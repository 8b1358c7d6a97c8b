// Norms of queries and keys on a device against the cpu backend's.

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec with_norms(const std::vector<Layer>& model, const char* name, int tensor = 1) {
  RunSpec spec = spec_of(model, make_schedule(name, {.ranks = 2, .microbatches = 2}));
  spec.grid.tensor = tensor;
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

}  // namespace

TEST_CASE("norms of heads on a device give the cpu's losses and gradients, whole and on tensor ranks") {
  std::vector<Layer> gpt = untied_gpt_model();  // with RoPE: without, the keys' biases have no gradient but rounding
  for (Layer& layer : gpt)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->rotary_size = block->head_size;
  for (const std::vector<Layer>& model : {llama_model(), gpt}) {
    const std::vector<Layer> normed = with_head_norms(model, QueryKeyNorms::kEachHead);
    for (const char* name : {"1f1b", "zb-h1"}) check_beside_cpu_in_any_order(with_norms(normed, name));
    for (const bool sequence_parallel : {false, true}) {
      CAPTURE(sequence_parallel);
      RunSpec spec = with_norms(normed, "1f1b", 2);
      spec.sequence_parallel = sequence_parallel;
      check_beside_cpu(spec);
    }
  }
}

TEST_CASE("a norm of all heads on a device gives the cpu's losses and gradients") {
  check_beside_cpu(with_norms(with_head_norms(llama_model(), QueryKeyNorms::kAllHeads), "1f1b"));
}

TEST_CASE("norms of heads on a device are computed again to the same bits, and run in 16 bits") {
  check_rebuilt_and_in_16_bits(with_norms(with_head_norms(llama_model(), QueryKeyNorms::kEachHead), "1f1b"));
}

}  // namespace plumb::test
