// Mixtures of experts by their numbers.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kSpread{.microbatch = 2, .sequence = 16, .experts = {.parallel = 4}};
constexpr std::int64_t kPicks = 2 * 16 * 2;

std::vector<Exchange> of_experts(const LayerProgram& program, Pass pass) {
  std::vector<Exchange> exchanges = exchanges_of(program, pass);
  std::erase_if(exchanges, [](const Exchange& exchange) { return exchange.group != ExchangeGroup::kExpert; });
  return exchanges;
}

}  // namespace

TEST_CASE("picks travel to their experts and back, and their weights with the gradients") {
  const LayerProgram program = layer_program(small_mixture(), kSpread);
  const std::vector<Exchange> forward = of_experts(program, Pass::kForward);
  REQUIRE(forward.size() == 3);
  CHECK(forward[0].elements == 8);  // rows of each expert
  CHECK(forward[1].elements == kPicks * 128);
  CHECK(forward[2].elements == kPicks * 128);
  std::int64_t rows = 0, weights = 0;
  for (const Exchange& exchange : of_experts(program, Pass::kInputGrad))
    (exchange.type == StoredType::kSingle ? weights : rows) += exchange.elements;
  CHECK(rows == 2 * kPicks * 128);
  CHECK(weights == 2 * kPicks);
  CHECK(of_experts(program, Pass::kWeightGrad).empty());
}

TEST_CASE("biases of experts and of the router are parameters that are trained, and the selection's bias is none") {
  const std::vector<ParameterTensor> parameters = layer_parameters(small_oss_block(), 2, {.parallel = 4, .tensor = 2});
  const auto shape = [&](const std::string& name) {
    const auto found = std::ranges::find(parameters, name, &ParameterTensor::name);
    return found == parameters.end() ? std::vector<std::int64_t>{} : found->shape;
  };
  CHECK(shape("router.bias") == std::vector<std::int64_t>{8});
  CHECK(shape("experts.gate_up.bias") == std::vector<std::int64_t>{2, 64});
  CHECK(shape("experts.down.bias") == std::vector<std::int64_t>{2, 128});
  CHECK(shape("attention.sinks") == std::vector<std::int64_t>{4});
  TransformerLayer selected = small_mixture();
  selected.selection_bias = true;
  CHECK(layer_parameters(selected).size() == layer_parameters(small_mixture()).size() + 1);
  CHECK(parameter_count(selected) == parameter_count(small_mixture()));  // no optimizer trains the bias of picks
}

TEST_CASE("a weight gradient gathers the output's gradient for a shared expert alone") {
  LayerWork divided{.microbatch = 2, .sequence = 16, .tensor_parallel = 2, .sequence_parallel = true};
  divided.experts.tensor = 2;
  TransformerLayer shared = small_mixture();
  shared.shared_ffn = 96;
  CHECK(exchanges_of(layer_program(small_mixture(), divided), Pass::kWeightGrad).size() == 3);
  CHECK(exchanges_of(layer_program(shared, divided), Pass::kWeightGrad).size() == 4);
}

TEST_CASE("tensor ranks that do not share experts route all picks, and bring their part of the rows to them") {
  const LayerWork whole{.microbatch = 2,
                        .sequence = 16,
                        .tensor_parallel = 2,
                        .sequence_parallel = true,
                        .experts = {.parallel = 4, .tensor = 1}};
  const LayerProgram program = layer_program(small_mixture(), whole);
  const std::vector<Exchange> forward = of_experts(program, Pass::kForward);
  REQUIRE(forward.size() == 3);
  CHECK(forward[1].elements == kPicks / 2 * 128);
  double flops = 0, shared_flops = 0;
  for (const KernelCall& call : kernels_of(program, Pass::kForward))
    if (call.kind == KernelKind::kGemm && call.shape[3] > 1) flops += call.flops;
  LayerWork shared = whole;
  shared.experts.tensor = 2;
  for (const KernelCall& call : kernels_of(layer_program(small_mixture(), shared), Pass::kForward))
    if (call.kind == KernelKind::kGemm && call.shape[3] > 1) shared_flops += call.flops;
  CHECK(flops > 0);
  CHECK(flops == shared_flops);  // half of the rows, or half of the channels
}

TEST_CASE("a device has room for the most rows that a router may send") {
  const LayerProgram program = layer_program(small_mixture(), kSpread, Machine::kDevice);
  const auto input = std::ranges::find(program.tensors, "expert input", &LayerTensor::name);
  REQUIRE(input != program.tensors.end());
  CHECK(input->rows ==
        4 * most_rows_to_expert_rank(small_mixture(), {.sequences = 2, .tokens = 16, .sequence = 16}, 4));
}

}  // namespace plumb::test
