#include "planner/price/memory/stage_memory.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

// Korthikanti et al. 2022 count 34 s b h bytes a layer without the s^2 terms: 4 for the inputs of two layer norms, 11
// for the attention (QKV's input 2, Q K V 6, projection's input 2, dropout mask 1), 19 for the MLP (8 + 8 + 2 + dropout
// mask 1). Plumb's layers have no dropout, and keep statistics: 32 s b h, 2 fp32 a row and norm, 1 fp32 a token and
// head.
constexpr std::int64_t kSequence = 512;
constexpr std::int64_t kSmallHidden = 1024;
constexpr std::int64_t kHeads = 8;

std::vector<Layer> transformers(int count) {
  const std::vector<Layer> all = model_layers(small_gpt());
  return {all.begin() + 1, all.begin() + 1 + count};
}

StageMemory memory(const std::vector<Layer>& layers, const Layout& layout, BackwardForm form = {}) {
  return stage_memory(layers, {.global_batch = 4, .sequence = kSequence}, layout, form);
}

std::int64_t statistics(std::int64_t rows, std::int64_t heads) {
  return rows * 2 * 2 * 4 + kSequence * heads * 4;
}

}  // namespace

TEST_CASE("activations of a layer are Korthikanti's without dropout") {
  CHECK(memory(transformers(1), {}).forward_bytes == 32 * kSequence * kSmallHidden + statistics(kSequence, kHeads));
  CHECK(memory(transformers(3), {}).forward_bytes == 3 * memory(transformers(1), {}).forward_bytes);
  CHECK(memory(transformers(1), {.microbatch = 2}).forward_bytes == 2 * memory(transformers(1), {}).forward_bytes);
}

TEST_CASE("tensor parallelism divides all but 8 s b h, sequence parallelism all (Korthikanti equations 2 and 4)") {
  // The layer keeps s b h (10 + 24/t) less the masks' 2: the norms' inputs 4 and their outputs 4 stay whole.
  CHECK(memory(transformers(1), {.tensor = 4}).forward_bytes ==
        kSequence * kSmallHidden * (8 + 24 / 4) + statistics(kSequence, kHeads / 4));
  CHECK(memory(transformers(1), {.tensor = 4, .sequence_parallel = true}).forward_bytes ==
        kSequence * kSmallHidden * 32 / 4 + statistics(kSequence / 4, kHeads / 4));
}

TEST_CASE("full recomputation keeps 2 s b h a layer and rebuilds one layer at a time") {
  const Layout full{.recompute = Recompute::kFull};
  const std::int64_t input = 2 * kSequence * kSmallHidden;
  CHECK(memory(transformers(3), full).forward_bytes == 3 * input);
  CHECK(memory(transformers(3), full).recompute_bytes == memory(transformers(1), {}).forward_bytes - input);
}

TEST_CASE("selective recomputation drops the outputs of both norms and of the activation: 12 s b h") {
  const StageMemory selective = memory(transformers(2), {.recompute = Recompute::kSelective});
  const std::int64_t dropped = (2 + 2 + 8) * kSequence * kSmallHidden;
  CHECK(selective.forward_bytes == memory(transformers(2), {}).forward_bytes - 2 * dropped);
  CHECK(selective.recompute_bytes == dropped);
}

TEST_CASE("what is rebuilt at I waits for W, and R holds all but the stage's input") {
  const Layout full{.recompute = Recompute::kFull};
  const std::int64_t layer = memory(transformers(1), {}).forward_bytes;
  const std::int64_t input = 2 * kSequence * kSmallHidden;
  CHECK(memory(transformers(3), full, {.split = true}).recompute_bytes == 3 * (layer - input));
  const StageMemory with_actions = memory(transformers(3), full, {.recompute_actions = true});
  CHECK(with_actions.forward_bytes == input);
  CHECK(with_actions.forward_bytes + with_actions.recompute_bytes == 3 * layer);
}

TEST_CASE("a split backward releases at I what W does not read") {
  CHECK(memory(transformers(1), {}).released_at_input_grad_bytes == 0);
  CHECK(memory(transformers(1), {}, {.split = true}).released_at_input_grad_bytes == statistics(kSequence, kHeads));
}

TEST_CASE("model state is 2 + 4 + 12 bytes a parameter, divided by ZeRO stage") {
  const std::int64_t parameters = parameter_count(transformers(1)[0]);
  const auto state = [&](int zero) { return memory(transformers(1), {.data = 4, .zero = zero}); };
  const auto share = [&](std::int64_t parts) { return (parameters + parts - 1) / parts; };
  CHECK(state(0).parameter_bytes == 2 * parameters);
  CHECK(state(0).gradient_bytes == 4 * parameters);
  CHECK(state(0).optimizer_bytes == 12 * parameters);
  CHECK(state(1).optimizer_bytes == 12 * share(4));
  CHECK(state(1).gradient_bytes == 4 * parameters);
  CHECK(state(2).gradient_bytes == 4 * share(4));
  CHECK(state(2).parameter_bytes == 2 * parameters);
  CHECK(state(3).parameter_bytes == 2 * share(4));
}

TEST_CASE("ZeRO 2 and 3 have one layer's gradient whole, ZeRO 3 two layers' weights") {
  const std::int64_t parameters = parameter_count(transformers(1)[0]);
  const auto state = [&](int zero) { return memory(transformers(3), {.data = 4, .zero = zero}); };
  CHECK(state(2).backward_workspace_bytes - state(1).backward_workspace_bytes == 4 * parameters);
  CHECK(state(2).unsharded_bytes == 0);
  CHECK(state(3).unsharded_bytes == 2 * 2 * parameters);
}

TEST_CASE("the last stage keeps logits, and a stage without layers of a kind keeps nothing of it") {
  const std::vector<Layer> all = model_layers(small_gpt());
  const std::int64_t head = memory({all.back()}, {}).forward_bytes;
  CHECK(head == 2 * kSequence * (2 * kSmallHidden + 8192) + kSequence * 2 * 4);
  CHECK(memory({all.front()}, {}).forward_bytes == 4 * kSequence);  // the tokens
}

TEST_CASE("SimuMax's Llama formula: 2 s b (6 h + 2 k d + 3 f) bytes a layer") {
  const ModelSpec llama = preset_model("llama-2-70b");
  const std::vector<Layer> layers = model_layers(llama);
  const std::int64_t counted = stage_memory({layers[1]}, {.global_batch = 1, .sequence = 4096}, {}, {}).forward_bytes;
  const std::int64_t formula = 2 * 4096 * (6 * 8192 + 2 * 8 * 128 + 3 * 28672);
  // The formula leaves out norm statistics and log-sum-exp.
  const std::int64_t small = 4096 * 4 * (2 + 64);
  CHECK(counted == formula + small);
}

}  // namespace plumb::test
