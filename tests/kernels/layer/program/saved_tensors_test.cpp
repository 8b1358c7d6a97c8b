// tests/executor/stages/host/cpu_stage_test.cpp compares these tensors and temporaries with those that the CPU's layers take.

#include "kernels/layer/program/saved_tensors.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernels/layer/program/recomputed.h"
#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kSavedWork{.microbatch = 2, .sequence = 16};
constexpr std::int64_t kTokens = 32;

struct Sums {
  std::int64_t kept = 0;        // from the forward on
  std::int64_t recomputed = 0;  // forgotten
};

Sums sums_of(const LayerProgram& program, Recompute what = Recompute::kNone) {
  Sums sums;
  for (const SavedTensor& tensor : saved_tensors(program, what)) {
    const std::int64_t bytes = tensor.bytes(2);
    if (tensor.recomputed) sums.recomputed += bytes;
    if (!tensor.recomputed && !tensor.from_input_grad) sums.kept += bytes;
  }
  return sums;
}

}  // namespace

TEST_CASE("an MLP keeps its input, both sides of its activation, and its output's gradient for the weight gradient") {
  const LayerProgram program = layer_program(MlpLayer{.hidden = 4, .ffn = 16}, {.microbatch = 3});
  const std::vector<SavedTensor> saved = saved_tensors(program);
  REQUIRE(saved.size() == 4);
  CHECK(saved[0].name == "input");
  CHECK(saved[0].is_input);
  CHECK(saved[1].name == "up");
  CHECK(saved[2].name == "activation");
  CHECK(saved[3].name == "output gradient");
  CHECK(saved[3].from_input_grad);
  CHECK(std::ranges::all_of(saved, &SavedTensor::needed_by_weight_grad));
  CHECK(workspace_bytes(program, Pass::kForward, 4) == 0);             // the branch becomes the output
  CHECK(workspace_bytes(program, Pass::kInputGrad, 4) == 3 * 16 * 4);  // the activation's gradient
}

TEST_CASE("recomputation moves what is forgotten from what is kept, and full keeps the input alone") {
  const LayerProgram program = layer_program(small_llama_block(), kSavedWork);
  const Sums none = sums_of(program), selective = sums_of(program, Recompute::kSelective),
             full = sums_of(program, Recompute::kFull);
  CHECK(none.recomputed == 0);
  CHECK(selective.recomputed == kTokens * (2 * 128 + 352) * 2);
  CHECK(selective.kept + selective.recomputed == none.kept);
  CHECK(full.kept == kTokens * 128 * 2);
  CHECK(full.kept + full.recomputed == none.kept);
}

TEST_CASE("any steps may be recomputed: without attention's core its output and statistics are forgotten") {
  const LayerProgram program = layer_program(small_llama_block(), kSavedWork);
  std::vector<bool> steps(program.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = program.steps[i].name == "attention";
  std::int64_t forgotten = 0;
  for (const SavedTensor& tensor : saved_tensors(program, results_of(program, steps)))
    if (tensor.recomputed) forgotten += tensor.bytes(2);
  CHECK(forgotten == kTokens * (128 * 2 + 8 * 4));
}

TEST_CASE("the gradient that a stage receives waits for its last layer's weight gradient") {
  // After the input gradient a block has no input any more, but the gradient of its output; a head has neither.
  const auto late = [](const Layer& layer, const char* name) {
    const std::vector<SavedTensor> saved = saved_tensors(layer_program(layer, kSavedWork));
    const auto found = std::ranges::find(saved, name, &SavedTensor::name);
    return found != saved.end() && found->needed_by_weight_grad;
  };
  CHECK_FALSE(late(small_llama_block(), "input"));
  CHECK(late(small_llama_block(), "output gradient"));
  CHECK_FALSE(late(HeadLayer{.vocab = 100, .hidden = 128}, "input"));
  CHECK(late(EmbeddingLayer{.vocab = 100, .hidden = 128}, "output gradient"));
}

TEST_CASE("ranks that divide rows gather them into temporaries, one at a time") {
  LayerWork divided = kSavedWork;
  divided.tensor_parallel = 2;
  divided.sequence_parallel = true;
  const LayerProgram program = layer_program(small_llama_block(), divided);
  const std::int64_t gathered = kTokens * 128 * 2;
  CHECK(workspace_bytes(program, Pass::kForward, 2) == gathered);
  // Beside the gathered gradient of the output stands that of the activation, [T, f/2].
  CHECK(workspace_bytes(program, Pass::kInputGrad, 2) == gathered + kTokens * 176 * 2);
}

}  // namespace plumb::test
