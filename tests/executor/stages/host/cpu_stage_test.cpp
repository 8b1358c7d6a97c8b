#include "executor/stages/host/cpu_stage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "executor/transport/in_process_transport.h"
#include "executor/transport/monotonic_clock.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

TransformerLayer neox_block() {
  TransformerLayer block = gpt_block();
  block.parallel_residual = true;
  block.exact_gelu = true;
  block.rotary_size = 4;
  block.window = 3;
  return block;
}

/// Returns a block with a shared expert and a parallel residual, without a capacity.
TransformerLayer dropless_shared_block() {
  TransformerLayer block = shared_expert_block();
  block.capacity_factor = 0;
  block.parallel_residual = true;
  return block;
}

/// Returns models with each kind of layer. Only results depend on the data's values, not which calls are made.
std::vector<std::vector<Layer>> even_models() {
  std::vector<Layer> neox = gpt_model(2), shared = shared_expert_model(2);
  neox[1] = neox[2] = neox_block();
  shared[1] = shared[2] = dropless_shared_block();
  return {llama_model(2), gpt_model(2), neox, mixtral_model(2), with_dropout(neox), shared, cnn_model(), mlp_model()};
}

/// Returns these models and one whose experts are full.
std::vector<std::vector<Layer>> models() {
  std::vector<std::vector<Layer>> all = even_models();
  all.push_back(with_dropout(shared_expert_model(2)));
  return all;
}

/// Returns the gradients of both blocks of parameters.
std::vector<LayerValues> stage_gradients(CpuStage& stage) {
  std::vector<LayerValues> values = {stage.parameters().gradient_values()};
  if (stage.experts() != nullptr) values.push_back(stage.experts()->gradient_values());
  return values;
}

const std::vector<std::uint8_t> kText = walk_text();

LayerWork work_of(const std::vector<Layer>& layers) {
  return {.microbatch = 2, .sequence = reads_samples(layers) ? 1 : 7};
}

const SampleData kImages = samples_for(cnn_model());
const SampleData kVectors = samples_for(mlp_model());

CpuStageOptions options_for(std::vector<Layer> layers, int microbatches = 2) {
  const LayerWork work = work_of(layers);
  const SampleData& samples = layers.front() == mlp_model().front() ? kVectors : kImages;
  return {.layers = std::move(layers),
          .microbatch = work.microbatch,
          .sequence = work.sequence,
          .text = kText,
          .samples = &samples,
          .weight_versions = std::vector<int>(static_cast<std::size_t>(microbatches), 0),
          .gradient_scales = std::vector<float>(static_cast<std::size_t>(microbatches), 1.0F)};
}

std::vector<KernelCall> expected_calls(const std::vector<Layer>& layers, Pass pass) {
  std::vector<std::vector<KernelCall>> by_layer;
  for (const Layer& layer : layers) by_layer.push_back(layer_kernels(layer, work_of(layers), pass));
  if (pass == Pass::kInputGrad || pass == Pass::kWeightGrad) std::ranges::reverse(by_layer);
  std::vector<KernelCall> calls;
  for (const auto& part : by_layer) calls.insert(calls.end(), part.begin(), part.end());
  return calls;
}

std::int64_t saved_bytes(const std::vector<Layer>& layers, bool after_input_grad, std::int64_t element_bytes = 4) {
  std::int64_t bytes = 0;
  for (const Layer& layer : layers)
    for (const SavedTensor& tensor : saved_tensors(layer_program(layer, work_of(layers))))
      if (after_input_grad ? tensor.needed_by_weight_grad : !tensor.from_input_grad)
        bytes += tensor.elements * (tensor.single_precision ? 4 : element_bytes);
  return bytes;
}

}  // namespace

TEST_CASE("a stage calls exactly the kernels that layer_kernels lists, in their order") {
  for (const std::vector<Layer>& model : even_models()) {
    std::vector<KernelCall> calls;
    CpuStageOptions options = options_for(model);
    options.kernel_log = &calls;
    TensorPool pool;
    CpuStage stage(std::move(options), pool);
    stage.begin(0);

    const auto taken = [&] { return std::exchange(calls, {}); };
    stage.forward(0, {});
    CHECK(taken() == expected_calls(model, Pass::kForward));
    stage.input_grad(0, {});
    CHECK(taken() == expected_calls(model, Pass::kInputGrad));
    stage.weight_grad(0);
    CHECK(taken() == expected_calls(model, Pass::kWeightGrad));
    stage.optimizer_step();
    const std::vector<KernelCall> updates = taken();  // the experts' come last
    CHECK(std::ranges::is_permutation(updates, expected_calls(model, Pass::kOptimizer)));
  }
}

TEST_CASE("a stage keeps exactly the tensors that saved_tensors lists, and after I those that W needs") {
  for (const std::vector<Layer>& model : models()) {
    TensorPool pool;
    CpuStage stage(options_for(model), pool);
    stage.begin(0);
    const std::int64_t before = pool.live_bytes();
    stage.forward(0, {});
    CHECK(pool.live_bytes() - before == saved_bytes(model, false));
    stage.input_grad(0, {});
    CHECK(pool.live_bytes() - before == saved_bytes(model, true));
    stage.weight_grad(0);
    CHECK(pool.live_bytes() == before);
  }
}

TEST_CASE("in 16 bits a stage keeps these tensors in 2 bytes an element, but for statistics, tokens and masks") {
  for (const std::vector<Layer>& model : models())
    for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
      TensorPool pool;
      CpuStageOptions options = options_for(model);
      options.half = format;
      CpuStage stage(std::move(options), pool);
      stage.begin(0);
      const std::int64_t before = pool.live_bytes();
      stage.forward(0, {});
      CHECK(pool.live_bytes() - before == saved_bytes(model, false, 2));
      stage.input_grad(0, {});
      CHECK(pool.live_bytes() - before == saved_bytes(model, true, 2));
      stage.weight_grad(0);
      CHECK(pool.live_bytes() == before);
    }
}

TEST_CASE("the temporaries of a block are those that workspace_bytes counts") {
  for (const TransformerLayer& block :
       {llama_block(), gpt_block(), neox_block(), mixtral_block(), dropless_shared_block(),
        std::get<TransformerLayer>(with_dropout(gpt_model())[1]),
        std::get<TransformerLayer>(with_dropout(mixtral_model())[2])}) {
    const LayerProgram program = layer_program(block, work_of({block}));
    TensorPool pool;
    CpuStage stage(options_for({block}), pool);
    stage.begin(0);
    const std::int64_t before = pool.live_bytes(), message_bytes = 4 * stage.input_elements(0);
    pool.reset_peak();
    Tensor output = stage.forward(0, pool.take_zeros(stage.input_elements(0)));
    CHECK(pool.peak_bytes() - before ==
          saved_bytes({block}, false) + message_bytes + workspace_bytes(program, Pass::kForward, 4));
    output = {};
    pool.reset_peak();
    Tensor gradient = stage.input_grad(0, pool.take_zeros(stage.output_elements(0)));
    const std::int64_t bound =
        saved_bytes({block}, false) + message_bytes + workspace_bytes(program, Pass::kInputGrad, 4);
    // The statistics and the log-sum-exp may be gone already when the largest temporaries exist.
    const std::int64_t small_tensors = 4 * (2 * 14 * 2 + 4 * 28 + 8);
    CHECK(pool.peak_bytes() - before <= bound);
    CHECK(pool.peak_bytes() - before >= bound - small_tensors);
    pool.reset_peak();
    const std::int64_t live = pool.live_bytes();
    stage.weight_grad(0);
    CHECK(pool.peak_bytes() == live + workspace_bytes(program, Pass::kWeightGrad, 4));
  }
}

TEST_CASE("tensor ranks that divide rows take the temporaries of their program, gathered rows among them") {
  constexpr int kRanks = 2;
  const LayerWork work{.microbatch = 2, .sequence = 8, .tensor_parallel = kRanks, .sequence_parallel = true};
  for (const TransformerLayer& block :
       {llama_block(), gpt_block(), neox_block(), std::get<TransformerLayer>(with_dropout(gpt_model())[1])}) {
    const LayerProgram program = layer_program(block, work);
    std::int64_t saved = 0;
    for (const SavedTensor& tensor : saved_tensors(program))
      if (!tensor.from_input_grad) saved += tensor.bytes(4);
    std::array<std::int64_t, kRanks> forward{}, backward{};
    const Clock clock = monotonic_clock();
    InProcessTransport transport({.ranks = kRanks}, clock);
    const auto measure = [&](int rank) {
      TensorPool pool;
      Communicator group(transport, {"group", {0, 1}}, rank, clock);
      CpuStageOptions options = options_for({block});
      options.groups.tensor = &group;
      options.sequence = work.sequence;
      options.sequence_parallel = true;
      CpuStage stage(std::move(options), pool);
      stage.begin(0);
      const std::int64_t before = pool.live_bytes(), message = 4 * stage.input_elements(0);
      const auto at = static_cast<std::size_t>(rank);
      pool.reset_peak();
      Tensor output = stage.forward(0, pool.take_zeros(stage.input_elements(0)));
      forward[at] = pool.peak_bytes() - before - saved - message;
      output = {};
      pool.reset_peak();
      Tensor gradient = stage.input_grad(0, pool.take_zeros(stage.output_elements(0)));
      backward[at] = pool.peak_bytes() - before - saved - message;
      stage.weight_grad(0);
    };
    std::thread other(measure, 1);
    measure(0);
    other.join();
    // Statistics and log-sum-exp may be gone already when the largest temporaries exist.
    const std::int64_t small_tensors = 4 * (2 * 16 * 2 + 4 * 16 + 8);
    for (int rank = 0; rank < kRanks; ++rank) {
      CHECK(forward[static_cast<std::size_t>(rank)] == workspace_bytes(program, Pass::kForward, 4));
      CHECK(backward[static_cast<std::size_t>(rank)] <= workspace_bytes(program, Pass::kInputGrad, 4));
      CHECK(backward[static_cast<std::size_t>(rank)] >= workspace_bytes(program, Pass::kInputGrad, 4) - small_tensors);
    }
  }
}

TEST_CASE("activations that are handed out leave nothing behind, and put back give the same gradients") {
  for (const std::vector<Layer>& model : models())
    for (const Recompute rebuild : {Recompute::kNone, Recompute::kStage}) {
      TensorPool pool, elsewhere;
      CpuStageOptions options = options_for(model);
      options.rebuild = rebuild;
      CpuStage stayed(options, pool), moved(options, pool);
      stayed.begin(0);
      moved.begin(0);
      stayed.forward(0, {});
      const std::int64_t before = pool.live_bytes();
      moved.forward(0, {});
      std::vector<Tensor> activations = moved.take_activations(0);
      for (Tensor& tensor : activations) tensor = elsewhere.take_copy(tensor);
      CHECK(pool.live_bytes() == before);
      if (rebuild == Recompute::kNone) CHECK(elsewhere.live_bytes() == saved_bytes(model, false));
      for (Tensor& tensor : activations) tensor = pool.take_copy(tensor);
      CHECK(elsewhere.live_bytes() == 0);
      moved.put_activations(0, std::move(activations));
      stayed.backward(0, {});
      moved.backward(0, {});
      CHECK(stage_gradients(moved) == stage_gradients(stayed));
    }
}

TEST_CASE("I then W give the gradients of B, bitwise, also when a W waits for the next I") {
  for (const std::vector<Layer>& model : models()) {
    TensorPool pool;
    CpuStage whole(options_for(model), pool), split(options_for(model), pool);
    whole.begin(0);
    split.begin(0);
    for (const int microbatch : {0, 1}) {
      whole.forward(microbatch, {});
      split.forward(microbatch, {});
    }
    for (const int microbatch : {0, 1}) whole.backward(microbatch, {});
    split.input_grad(0, {});
    split.input_grad(1, {});
    split.weight_grad(0);
    split.weight_grad(1);
    CHECK(stage_gradients(split) == stage_gradients(whole));
  }
}

TEST_CASE("the gradient of a whole model agrees with finite differences of its loss") {
  // The step goes along the gradient: loss(w + e g) - loss(w - e g) = 2 e |g|^2. Token rows are short (0.02 a channel)
  // and normed, so the step is short too.
  for (const std::vector<Layer>& model : models()) {
    TensorPool pool;
    CpuStage stage(options_for(model), pool);
    stage.begin(0);
    stage.forward(0, {});
    stage.backward(0, {});
    const std::vector<LayerValues> gradients = stage_gradients(stage);
    double square = 0;
    for (const LayerValues& block : gradients)
      for (const auto& layer : block)
        for (const auto& tensor : layer)
          for (const float g : tensor) square += double(g) * double(g);
    const double epsilon = 2.5e-4 / std::sqrt(square);
    const auto loss_at = [&](double factor) {
      CpuStage moved(options_for(model), pool);
      moved.begin(0);
      for (std::size_t block = 0; block < gradients.size(); ++block) {
        std::size_t element = 0;
        CpuParameters& parameters = block == 0 ? moved.parameters() : *moved.experts();
        const std::span<float> weights = parameters.newest_weights();
        for (const auto& layer : gradients[block])
          for (const auto& tensor : layer)
            for (const float g : tensor) weights[element++] += static_cast<float>(factor * double(g));
      }
      moved.forward(0, {});
      moved.backward(0, {});
      return moved.loss(0) + moved.balance_loss(0);
    };
    const double difference = (loss_at(epsilon) - loss_at(-epsilon)) / (2 * epsilon);
    CHECK(difference == doctest::Approx(square).epsilon(5e-3));
  }
}

TEST_CASE("with recomputation F keeps the stage's input only, and R or the backward rebuilds the rest") {
  const std::vector<Layer> layers = {llama_block(), llama_block()};
  TensorPool pool;
  CpuStageOptions options = options_for(layers);
  options.rebuild = Recompute::kStage;
  CpuStage stage(std::move(options), pool);
  stage.begin(0);
  const std::int64_t before = pool.live_bytes(), message_bytes = 4 * stage.input_elements(0);
  stage.forward(0, pool.take_zeros(stage.input_elements(0)));
  CHECK(pool.live_bytes() - before == message_bytes);
  stage.recompute(0);
  CHECK(pool.live_bytes() - before == saved_bytes(layers, false));
  stage.backward(0, pool.take_zeros(stage.output_elements(0)));
  CHECK(pool.live_bytes() == before);
}

TEST_CASE("groups of layers keep their inputs only, and a backward has one group's tensors at a time") {
  const std::vector<Layer> layers = {llama_block(), gpt_block(), llama_block(), llama_block(), llama_block()};
  TensorPool pool;
  CpuStageOptions options = options_for(layers);
  options.rebuild = Recompute::kFull;
  options.rebuild_layers = 2;
  CpuStage stage(std::move(options), pool);
  stage.begin(0);
  const std::int64_t before = pool.live_bytes(), message_bytes = 4 * stage.input_elements(0);
  stage.forward(0, pool.take_zeros(stage.input_elements(0)));
  CHECK(pool.live_bytes() - before == 3 * message_bytes);
  pool.reset_peak();
  stage.backward(0, pool.take_zeros(stage.output_elements(0)));
  CHECK(pool.peak_bytes() - before < saved_bytes(layers, false));
  CHECK(pool.live_bytes() == before);
}

TEST_CASE("selective recomputation lets go of norm outputs and activations, exactly") {
  for (const TransformerLayer& block :
       {llama_block(), gpt_block(), neox_block(), mixtral_block(), shared_expert_block()}) {
    std::int64_t dropped = 0;
    for (const SavedTensor& tensor : saved_tensors(layer_program(block, work_of({block}))))
      if (tensor.name == "norm1 output" || tensor.name == "norm2 output" || tensor.name == "activation" ||
          tensor.name == "shared activation")
        dropped += 4 * tensor.elements;
    TensorPool pool;
    CpuStageOptions options = options_for({block});
    options.rebuild = Recompute::kSelective;
    CpuStage stage(std::move(options), pool);
    stage.begin(0);
    const std::int64_t before = pool.live_bytes();
    stage.forward(0, pool.take_zeros(stage.input_elements(0)));
    CHECK(pool.live_bytes() - before == saved_bytes({block}, false) - dropped);
    stage.recompute(0);
    CHECK(pool.live_bytes() - before == saved_bytes({block}, false));
  }
}

TEST_CASE("every kind of recomputation gives the gradients of none, bitwise, by B and by I and W") {
  for (const std::vector<Layer>& model : models())
    for (const Recompute rebuild : {Recompute::kSelective, Recompute::kFull, Recompute::kStage})
      for (const bool split : {false, true}) {
        TensorPool pool;
        CpuStageOptions options = options_for(model);
        CpuStage plain(options, pool);
        options.rebuild = rebuild;
        options.rebuild_layers = 3;
        options.rebuilds = {true, false};  // like the schedule `except_last`
        CpuStage again(options, pool);
        for (CpuStage* stage : {&plain, &again}) {
          stage->begin(0);
          for (const int microbatch : {0, 1}) stage->forward(microbatch, {});
          for (const int microbatch : {0, 1}) {
            if (split) {
              stage->input_grad(microbatch, {});
              stage->weight_grad(microbatch);
            } else {
              stage->backward(microbatch, {});
            }
          }
        }
        CHECK(stage_gradients(again) == stage_gradients(plain));
        CHECK(again.loss(0) == plain.loss(0));
      }
}

TEST_CASE("an optimizer step copies the weights only while an older version is in use") {
  CpuStageOptions options = options_for(llama_model(1), 3);
  options.weight_versions = {0, 0, 1};
  TensorPool pool;
  CpuStage stage(std::move(options), pool);
  stage.begin(0);
  stage.forward(0, {});
  stage.forward(1, {});
  stage.backward(0, {});
  stage.optimizer_step();
  CHECK(stage.parameters().held_versions() == 2);  // micro-batch 1 still needs version 0
  stage.forward(2, {});
  stage.backward(1, {});
  CHECK(stage.parameters().held_versions() == 1);
  stage.backward(2, {});
  stage.optimizer_step();
  CHECK(stage.parameters().held_versions() == 1);
}

TEST_CASE("a stage takes all its memory in the first step") {
  TensorPool pool;
  CpuStage stage(options_for(llama_model(2)), pool);
  std::int64_t settled = 0;
  for (int step = 0; step < 3; ++step) {
    stage.begin(step);
    for (const int microbatch : {0, 1}) stage.forward(microbatch, {});
    for (const int microbatch : {0, 1}) stage.backward(microbatch, {});
    stage.optimizer_step();
    if (step == 0) settled = pool.allocations();
  }
  CHECK(pool.allocations() == settled);
}

}  // namespace plumb::test
