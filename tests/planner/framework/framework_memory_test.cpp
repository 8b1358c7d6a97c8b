#include "planner/cost/framework/framework_memory.h"

#include <doctest/doctest.h>

#include "tests/planner/framework/gpt_layer.h"

namespace plumb {
namespace {

constexpr double kS = 2048, kB = 4, kH = 1024, kA = 16;

const TrainingSpec kTraining{.global_batch = 4, .sequence = 2048};

StageMemory memory_of(Layout layout, const StackSpec& stack, int layers = 1) {
  layout.microbatch = 4;
  return framework_memory(std::vector<Layer>(static_cast<std::size_t>(layers), Layer(kGpt)), kTraining, stack, layout,
                          {});
}

}  // namespace

TEST_CASE("activations are those of Korthikanti et al. 2022, table 2") {
  const double sbh = kS * kB * kH;
  const double scores = 5 * kA * kS / kH;
  const auto activations = [](const Layout& layout) {
    const StageMemory memory = memory_of(layout, unfused());
    return static_cast<double>(memory.forward_bytes);
  };
  CHECK(activations({}) == sbh * (34 + scores));
  CHECK(activations({.tensor = 8}) == sbh * (10 + 24.0 / 8 + scores / 8));
  CHECK(activations({.tensor = 8, .sequence_parallel = true}) == sbh / 8 * (34 + scores));
  CHECK(activations({.tensor = 8, .sequence_parallel = true, .recompute = Recompute::kSelective}) == sbh / 8 * 34);
  CHECK(activations({.tensor = 8, .recompute = Recompute::kFull}) == 2 * sbh);
}

TEST_CASE("what is recomputed stands once, or for all layers where the backward is split") {
  const StackSpec stack = unfused();
  const std::vector<Layer> layers(3, Layer(kGpt));
  const Layout layout{.microbatch = 4, .recompute = Recompute::kFull};
  const StageMemory whole = framework_memory(layers, kTraining, stack, layout, {});
  const StageMemory split = framework_memory(layers, kTraining, stack, layout, {.split = true});
  CHECK(split.recompute_bytes == 3 * whole.recompute_bytes);
}

TEST_CASE("model state is 18 bytes a parameter, sharded by ZeRO stage") {
  const std::int64_t parameters = parameter_count(kGpt);
  const auto state = [&](int zero) {
    const StageMemory memory = memory_of({.data = 4, .zero = zero}, unfused());
    return std::tuple(memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes);
  };
  CHECK(state(0) == std::tuple(2 * parameters, 4 * parameters, 12 * parameters));
  CHECK(state(1) == std::tuple(2 * parameters, 4 * parameters, 3 * parameters));
  CHECK(state(2) == std::tuple(2 * parameters, parameters, 3 * parameters));
  CHECK(state(3) == std::tuple(parameters / 2, parameters, 3 * parameters));
}

TEST_CASE("context parallelism divides activations and shards with data parallelism") {
  const StackSpec stack{.name = "fused"};
  const StageMemory whole = memory_of({}, stack);
  const StageMemory half = memory_of({.context = 2, .zero = 1}, stack);
  CHECK(half.forward_bytes == whole.forward_bytes / 2);
  CHECK(half.optimizer_bytes == whole.optimizer_bytes / 2);
}

TEST_CASE("routed experts are divided by expert parallelism and sharded over their own replicas") {
  TransformerLayer layer = kGpt;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 1024;
  const std::vector<Layer> layers{Layer(layer)};
  const StackSpec stack{.name = "fused"};
  const auto memory = [&](const Layout& layout) { return framework_memory(layers, kTraining, stack, layout, {}); };
  const std::int64_t experts = expert_parameter_count(layer);
  const std::int64_t rest = parameter_count(layer) - experts;
  CHECK(memory({.data = 4, .expert = 4}).parameter_bytes == 2 * (rest + experts / 4));
  CHECK(memory({.data = 4, .expert = 4, .zero = 1}).optimizer_bytes == 12 * (rest / 4 + experts / 4));
  CHECK(memory({.data = 4, .expert = 2, .zero = 1}).optimizer_bytes == 12 * (rest / 4 + experts / 2 / 2));
}

TEST_CASE("the head holds what the stack says for each logit") {
  const std::vector<Layer> layers{HeadLayer{.vocab = 1000, .hidden = 1024}};
  StackSpec stack{.name = "fused", .vocab_multiple = 128};
  const Layout layout{.tensor = 2, .microbatch = 4};
  const auto workspace = [&] {
    return framework_memory(layers, kTraining, stack, layout, {}).backward_workspace_bytes;
  };
  const std::int64_t without = workspace();
  stack.logit_bytes = 10;
  CHECK(workspace() - without == 10 * 2048 * 4 * 1024 / 2);  // 1000 rows are padded to 1024
}

}  // namespace plumb
