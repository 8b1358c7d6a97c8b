#include "kernels/layer/program/recomputed.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kRecomputedWork{.microbatch = 2, .sequence = 16};

std::string names_of(const LayerProgram& program, const std::vector<bool>& forgotten) {
  std::string names;
  for (const int step : recomputed_steps(program, forgotten))
    names += program.steps[static_cast<std::size_t>(step)].name + "; ";
  return names;
}

std::string names_of(const LayerProgram& program, Recompute what) {
  return names_of(program, forgotten_tensors(program, what));
}

}  // namespace

TEST_CASE("selective recomputation repeats norms and activation functions, and full all that the backward needs") {
  const LayerProgram block = layer_program(small_gpt_block(), kRecomputedWork);
  CHECK(names_of(block, Recompute::kNone).empty());
  CHECK(names_of(block, Recompute::kSelective) == "norm1; norm2; activation; ");
  // The last product and the last sum are for the layer behind.
  CHECK(names_of(block, Recompute::kFull) ==
        "norm1; qkv; qkv bias; attention; attention_output; attention_output bias; residual; norm2; up; up bias; "
        "activation; ");
  CHECK(recomputed_kernels(block, Recompute::kSelective).size() == 3);
}

TEST_CASE("any set of steps may be recomputed, with the steps on whose forgotten results they depend") {
  const LayerProgram block = layer_program(small_llama_block(), kRecomputedWork);
  std::vector<bool> steps(block.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i] = block.steps[i].name == "qkv" || block.steps[i].name == "rotary";
  CHECK(names_of(block, results_of(block, steps)) == "qkv; rotary; ");
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = steps[i] || block.steps[i].name == "norm1";
  CHECK(names_of(block, results_of(block, steps)) == "norm1; qkv; rotary; ");
}

TEST_CASE("with tensor parallelism the exchanges on which a forgotten tensor depends are repeated, too") {
  LayerWork divided = kRecomputedWork;
  divided.tensor_parallel = 2;
  const LayerProgram block = layer_program(small_llama_block(), divided);
  const std::string names = names_of(block, Recompute::kFull);
  CHECK(names.find("attention branch summed; ") != std::string::npos);
  CHECK(names.find("feed-forward branch summed; ") == std::string::npos);
}

}  // namespace plumb::test
