// Asynchronous schedules against their recurrence: w(t+1) = update(w(t), g(w_1(v_1), ..., w_p(v_p))), with the version
// v_s that the policy gives stage s. The reference below is one thread that keeps every version there ever was and
// calls the layers directly. It shares neither stages nor the replay loop nor the transport with the code that it
// checks.

#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "executor/layers/host/layer.h"
#include "executor/parameters/initial_weights.h"
#include "executor/training/run.h"
#include "kernels/cpu/optimizers/adamw.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

using LayerWeights = std::vector<std::vector<float>>;  // [layer][element]

struct Reference {
  const RunSpec& spec;
  std::vector<Layer> model;
  std::vector<std::size_t> stage_of;   // [layer]
  std::vector<LayerWeights> versions;  // [version]
  LayerWeights first_moments, second_moments;

  explicit Reference(const RunSpec& run_spec) : spec(run_spec) {
    for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage)
      for (const Layer& layer : spec.stage_layers[stage]) {
        model.push_back(layer);
        stage_of.push_back(stage);
      }
    versions.emplace_back();
    for (std::size_t i = 0; i < model.size(); ++i) {
      versions[0].emplace_back(parameter_count(model[i]));
      fill_initial_weights(versions[0].back(), model[i], static_cast<int>(i), spec.seed);
    }
    first_moments = second_moments = zeros();
  }

  LayerWeights zeros() const {
    LayerWeights result;
    for (const std::vector<float>& layer : versions[0]) result.emplace_back(layer.size(), 0.0F);
    return result;
  }

  /// Adds the gradient of one micro-batch, with stage s at version version_of(s).
  void add_gradient(int microbatch, const std::function<int(int)>& version_of, std::int64_t batch_microbatches,
                    LayerWeights& gradients) const {
    TensorPool pool;
    const LayerWork work{.microbatch = spec.microbatch, .sequence = spec.sequence};
    std::vector<std::unique_ptr<CpuLayer>> layers;
    std::vector<std::unique_ptr<LayerSaved>> saved;
    std::vector<float> scratch;
    for (const Layer& layer : model) {
      layers.push_back(std::make_unique<CpuLayer>(layer, std::vector{work}));
      saved.push_back(layers.back()->make_saved());
      scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(layers.back()->scratch_elements())));
    }
    const CpuContext context{
        .kernels = CpuKernelSet(), .pool = &pool, .work = work, .scratch = scratch.data(), .text = spec.text};
    const auto call = [&](std::size_t layer) {
      const auto version = static_cast<std::size_t>(version_of(static_cast<int>(stage_of[layer])));
      return LayerCall{.context = context,
                       .place = {.seed = spec.seed,
                                 .first_sample = microbatch * spec.microbatch,
                                 .count = spec.microbatch,
                                 .sequence = spec.sequence},
                       .weights = versions[version][layer].data(),
                       .gradients = gradients[layer].data(),
                       .gradient_scale = static_cast<float>(
                           1.0 / static_cast<double>(batch_microbatches * spec.microbatch * spec.sequence))};
    };
    Tensor x;
    for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i]->forward(call(i), std::move(x), *saved[i]);
    for (std::size_t i = layers.size(); i-- > 0;) {
      x = layers[i]->input_grad(call(i), std::move(x), *saved[i]);
      layers[i]->weight_grad(call(i), *saved[i]);
    }
  }

  void update(LayerWeights gradients) {
    LayerWeights next = versions.back();
    for (std::size_t i = 0; i < model.size(); ++i) {
      std::int64_t element = 0;
      for (const ParameterTensor& tensor : layer_parameters(model[i])) {
        AdamW optimizer = std::get<AdamW>(spec.optimizer);
        if (tensor.shape.size() == 1) optimizer.weight_decay = 0;
        adamw_update(next[i].data() + element, gradients[i].data() + element, first_moments[i].data() + element,
                     second_moments[i].data() + element, element_count(tensor), optimizer,
                     static_cast<std::int64_t>(versions.size()));
        element += element_count(tensor);
      }
    }
    versions.push_back(std::move(next));
  }
};

LayerWeights flattened(const ModelValues& values) {
  LayerWeights result;
  for (const auto& layer : values) {
    result.emplace_back();
    for (const auto& tensor : layer) result.back().insert(result.back().end(), tensor.begin(), tensor.end());
  }
  return result;
}

RunSpec pipedream_spec(int ranks, int microbatches, WeightPolicy policy) {
  Schedule schedule = make_schedule("pipedream", {.ranks = ranks, .microbatches = microbatches});
  schedule.weights = policy;
  return spec_of(llama_model(), schedule);
}

}  // namespace

TEST_CASE("PipeDream follows its recurrence with stashed weights, bitwise") {
  for (const int ranks : {1, 2, 3, 6}) {
    CAPTURE(ranks);
    const RunSpec spec = pipedream_spec(ranks, 9, WeightPolicy::kStashed);
    Reference reference(spec);
    for (int t = 0; t < 9; ++t) {
      LayerWeights gradients = reference.zeros();
      reference.add_gradient(
          t, [&](int stage) { return std::max(0, t - (ranks - 1 - stage)); }, 1, gradients);
      reference.update(std::move(gradients));
    }
    const RunResult result = run(spec, {.capture_weights = true});
    CHECK(flattened(result.weights) == reference.versions.back());
    CHECK(result.losses.size() == 9);
  }
}

TEST_CASE("with vertical sync every stage uses the version of the first, bitwise") {
  constexpr int kRanks = 3;
  const RunSpec spec = pipedream_spec(kRanks, 7, WeightPolicy::kVerticalSync);
  Reference reference(spec);
  for (int t = 0; t < 7; ++t) {
    LayerWeights gradients = reference.zeros();
    reference.add_gradient(
        t, [&](int) { return std::max(0, t - (kRanks - 1)); }, 1, gradients);
    reference.update(std::move(gradients));
  }
  CHECK(flattened(run(spec, {.capture_weights = true}).weights) == reference.versions.back());
}

TEST_CASE("with two buffers batch t uses version max(0, t-1), bitwise") {
  // The order is PipeDream's with an update behind every second micro-batch: batches of two on two ranks.
  RunSpec spec = pipedream_spec(2, 8, WeightPolicy::kTwoBuffered);
  Schedule order = make_schedule("pipedream", {.ranks = 2, .microbatches = 8});
  order.weights = WeightPolicy::kTwoBuffered;
  for (std::vector<Action>& actions : order.ranks) {
    int steps = 0;
    std::erase_if(actions, [&](const Action& action) { return action.op == Op::kOptimizerStep && steps++ % 2 == 0; });
  }
  spec.schedule = lower(order);
  Reference reference(spec);
  for (int batch = 0; batch < 4; ++batch) {
    LayerWeights gradients = reference.zeros();
    for (int i = 0; i < 2; ++i)
      reference.add_gradient(
          2 * batch + i, [&](int) { return std::max(0, batch - 1); }, 2, gradients);
    reference.update(std::move(gradients));
  }
  const RunResult result = run(spec, {.capture_weights = true});
  CHECK(flattened(result.weights) == reference.versions.back());
  CHECK(result.losses.size() == 4);
}

TEST_CASE(
    "PipeDream keeps a version of the weights for each micro-batch under way, so it needs more memory than 1F1B") {
  const auto peak = [](const RunSpec& spec) { return run(spec).peak_memory_bytes; };
  RunSpec pipedream = pipedream_spec(3, 6, WeightPolicy::kStashed);
  RunSpec synchronous = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 6}));
  const std::vector<std::int64_t> more = peak(pipedream), fewer = peak(synchronous);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::int64_t weight_bytes = 0;
    for (const Layer& layer : pipedream.stage_layers[rank]) weight_bytes += 4 * parameter_count(layer);
    // p-1-rank micro-batches are under way when the newest weights are made. Both runs hold the same activations, but
    // an update stands between a receive and its consumer, so that one message fewer may wait.
    const std::int64_t message_bytes = 4 * pipedream.microbatch * pipedream.sequence * 16;
    const std::int64_t difference = more[rank] - fewer[rank], versions = static_cast<std::int64_t>(2 - rank);
    CHECK(difference <= versions * weight_bytes);
    CHECK(difference >= versions * weight_bytes - message_bytes);
  }
}

TEST_CASE("the loss of PipeDream falls") {
  RunSpec spec = pipedream_spec(3, 60, WeightPolicy::kStashed);
  spec.optimizer = AdamW{.learning_rate = 5e-3F};
  const std::vector<double> losses = run(spec).losses;
  CHECK(losses.back() < 0.8 * losses.front());
}

TEST_CASE("an asynchronous run goes on where the one before ended") {
  RunSpec spec = pipedream_spec(2, 4, WeightPolicy::kStashed);
  spec.steps = 3;
  const RunResult result = run(spec);
  CHECK(result.losses.size() == 12);
  CHECK(result.timelines.size() == 3);
}

TEST_CASE("tied ends are refused where stages take their steps at different times") {
  CHECK_THROWS_AS(run(spec_of(gpt_model(), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}))),
                  ScheduleError);
}

}  // namespace plumb::test
