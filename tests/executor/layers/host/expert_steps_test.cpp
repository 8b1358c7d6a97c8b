// A mixture of experts against a reference that computes token by token, in double. It is part of a block whose attention
// has no weights: y = x + mixture(norm(x)).

#include "executor/layers/host/expert_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "executor/layers/host/layer.h"
#include "executor/stages/host/cpu_stage.h"
#include "executor/transport/in_process_transport.h"
#include "tests/executor/layers/host/doubles.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// A mixture's weights, by parameter.
struct MixtureWeights {
  Doubles router, up, down, shared_up, shared_down;
  Doubles router_bias, up_bias, down_bias;  // empty: none
};

double activated(const TransformerLayer& layer, const Doubles& up, std::int64_t channel, std::int64_t channels) {
  const double gate = up[static_cast<std::size_t>(channel)];
  if (layer.mlp == MlpKind::kSwiglu)
    return gate / (1 + std::exp(-gate)) * up[static_cast<std::size_t>(channel + channels)];
  return gate / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate)));
}

/// The biases of one expert, from their first elements on; null: none.
struct MlpBiases {
  const double* up = nullptr;
  const double* down = nullptr;
};

/// Computes y [h] += scale * (W2 act(W1 x + b1) + b2), with each matrix from its first element on.
void add_mlp(const TransformerLayer& layer, Doubles& y, std::size_t at, const double* x, const double* w1,
             const double* w2, std::int64_t channels, double scale, const MlpBiases& biases = {}) {
  const std::int64_t h = layer.hidden, width = layer.mlp == MlpKind::kSwiglu ? 2 * channels : channels;
  Doubles up(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < width; ++i)
    for (std::int64_t c = 0; c < h; ++c) up[static_cast<std::size_t>(i)] += w1[i * h + c] * x[c];
  if (biases.up != nullptr)
    for (std::int64_t i = 0; i < width; ++i) up[static_cast<std::size_t>(i)] += biases.up[i];
  if (biases.down != nullptr)
    for (std::int64_t c = 0; c < h; ++c) y[at + static_cast<std::size_t>(c)] += scale * biases.down[c];
  for (std::int64_t i = 0; i < channels; ++i)
    for (std::int64_t c = 0; c < h; ++c)
      y[at + static_cast<std::size_t>(c)] += scale * w2[c * channels + i] * activated(layer, up, i, channels);
}

struct Result {
  Doubles output;
  double balance_loss = 0;
  int dropped = 0;
};

/// Leaves the experts of the groups whose best ones are the most probable; `order` is by probability.
void keep_best_groups(const TransformerLayer& layer, std::vector<std::size_t>& order) {
  const auto each = static_cast<std::size_t>(layer.experts / layer.expert_groups);
  std::vector<std::size_t> groups;
  for (const std::size_t e : order)
    if (std::ranges::find(groups, e / each) == groups.end()) groups.push_back(e / each);
  groups.resize(static_cast<std::size_t>(layer.groups_per_token));
  std::erase_if(order, [&](std::size_t e) { return std::ranges::find(groups, e / each) == groups.end(); });
}

Result naive(const TransformerLayer& layer, const MixtureWeights& weights, const Doubles& x, std::int64_t sequences,
             std::int64_t sequence) {
  const std::int64_t h = layer.hidden, experts = layer.experts, f = layer.expert_ffn;
  const std::int64_t width = layer.mlp == MlpKind::kSwiglu ? 2 * f : f;
  Result result{.output = Doubles(x.size())};
  for (std::int64_t b = 0; b < sequences; ++b) {
    Doubles taken(static_cast<std::size_t>(experts)), means(taken.size());
    for (std::int64_t t = b * sequence; t < (b + 1) * sequence; ++t) {
      const double* token = x.data() + t * h;
      Doubles p(taken.size());
      double sum = 0;
      for (std::int64_t e = 0; e < experts; ++e) {
        double score = weights.router_bias.empty() ? 0 : weights.router_bias[static_cast<std::size_t>(e)];
        for (std::int64_t c = 0; c < h; ++c) score += weights.router[static_cast<std::size_t>(e * h + c)] * token[c];
        sum += p[static_cast<std::size_t>(e)] = std::exp(score);
      }
      for (std::size_t e = 0; e < p.size(); ++e) means[e] += (p[e] /= sum) / double(sequence);
      std::vector<std::size_t> order(p.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t c) { return p[a] > p[c]; });
      keep_best_groups(layer, order);
      order.resize(static_cast<std::size_t>(layer.experts_per_token));
      double picked = 0;
      for (const std::size_t e : order) picked += p[e];
      for (const std::size_t e : order) {
        if (taken[e]++ >= double(expert_capacity(layer, sequence))) {
          ++result.dropped;
          continue;
        }
        const auto number = static_cast<std::int64_t>(e);
        MlpBiases biases;
        if (layer.expert_bias)
          biases = {weights.up_bias.data() + number * width, weights.down_bias.data() + number * h};
        add_mlp(layer, result.output, static_cast<std::size_t>(t * h), token, weights.up.data() + number * width * h,
                weights.down.data() + number * h * f, f, layer.renormalised ? p[e] / picked : p[e], biases);
      }
      if (layer.shared_ffn > 0)
        add_mlp(layer, result.output, static_cast<std::size_t>(t * h), token, weights.shared_up.data(),
                weights.shared_down.data(), layer.shared_ffn, 1);
    }
    for (std::size_t e = 0; e < taken.size(); ++e)
      result.balance_loss += layer.balance_loss * double(experts) * taken[e] /
                             double(sequence * layer.experts_per_token) * means[e] * double(sequence);
  }
  return result;
}

/// Returns x / sqrt(mean(x^2) + epsilon), row by row.
Doubles normalised(const TransformerLayer& layer, Doubles x) {
  const auto h = static_cast<std::size_t>(layer.hidden);
  for (std::size_t row = 0; row < x.size(); row += h) {
    double squares = 0;
    for (std::size_t c = 0; c < h; ++c) squares += x[row + c] * x[row + c];
    for (std::size_t c = 0; c < h; ++c) x[row + c] /= std::sqrt(squares / double(h) + layer.norm_epsilon);
  }
  return x;
}

Result naive_block(const TransformerLayer& layer, const MixtureWeights& weights, const Doubles& x,
                   std::int64_t sequences, std::int64_t sequence) {
  Result result = naive(layer, weights, normalised(layer, x), sequences, sequence);
  for (std::size_t i = 0; i < x.size(); ++i) result.output[i] += x[i];
  return result;
}

/// Returns [rank] the bytes that a stage of one block keeps after F, on ranks of an expert group with a replica each,
/// or of a tensor group.
std::vector<std::int64_t> stashed(const TransformerLayer& block, int ranks, bool of_tensor_group) {
  const std::vector<std::uint8_t> text = walk_text();
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  std::vector<TensorPool> pools(bytes.size());
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = ranks}, clock);
  std::vector<int> members(bytes.size());
  std::iota(members.begin(), members.end(), 0);
  const auto train = [&](int rank) {
    TensorPool& pool = pools[static_cast<std::size_t>(rank)];
    Communicator group(transport, {"group", members}, rank, clock);
    CpuStage stage(
        {.layers = {block},
         .groups = {.tensor = of_tensor_group ? &group : nullptr, .expert = of_tensor_group ? nullptr : &group},
         .expert_tensor = of_tensor_group ? ranks : 1,
         .microbatch = 2,
         .sequence = 8,
         .text = text,
         .first_sample = of_tensor_group ? 0 : 2 * rank,
         .weight_versions = {0},
         .gradient_scales = {1}},
        pool);
    stage.begin(0);
    const std::int64_t before = pool.live_bytes();
    Tensor input = pool.take(stage.input_elements(0)), gradient = pool.take_zeros(stage.output_elements(0));
    for (std::size_t i = 0; i < input.values().size(); ++i)
      input.data()[i] = standard_normal({5, of_tensor_group ? 0U : static_cast<std::uint64_t>(rank), i});
    const std::int64_t gradient_bytes = 4 * gradient.elements();
    stage.forward(0, std::move(input));
    bytes[static_cast<std::size_t>(rank)] = pool.live_bytes() - before - gradient_bytes;
    stage.backward(0, std::move(gradient));
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(train, rank);
  for (std::thread& thread : threads) thread.join();
  return bytes;
}

std::int64_t mixture_saved_bytes(const TransformerLayer& block, const LayerWork& work) {
  std::int64_t elements = 0;
  for (const SavedTensor& tensor : saved_tensors(layer_program(block, work)))
    if (!tensor.from_input_grad) elements += tensor.elements;
  return 4 * elements;
}

}  // namespace

TEST_CASE("what ranks of an expert group keep adds up to what saved_tensors lists for each") {
  TransformerLayer bounded = shared_expert_block();
  bounded.capacity_factor = 1;
  for (const int ranks : {2, 4}) {
    const LayerWork work{.microbatch = 2, .sequence = 8, .experts = {.parallel = ranks}};
    const std::vector<std::int64_t> dropless = stashed(mixtral_block(), ranks, false);
    CHECK(std::accumulate(dropless.begin(), dropless.end(), std::int64_t{0}) ==
          ranks * mixture_saved_bytes(mixtral_block(), work));
    // A capacity bounds every rank's rows beforehand.
    for (const std::int64_t bytes : stashed(bounded, ranks, false)) CHECK(bytes == mixture_saved_bytes(bounded, work));
  }
  const LayerWork divided{.microbatch = 2, .sequence = 8, .tensor_parallel = 2, .experts = {.tensor = 2}};
  for (const TransformerLayer& block : {mixtral_block(), bounded})
    for (const std::int64_t bytes : stashed(block, 2, true)) CHECK(bytes == mixture_saved_bytes(block, divided));
}

TEST_CASE("a mixture and its gradients are those of one that is written down token by token") {
  TransformerLayer dropping = shared_expert_block();
  dropping.capacity_factor = 0.75;
  TransformerLayer grouped = mixtral_block();
  grouped.experts = 6;
  grouped.expert_groups = 3;
  grouped.groups_per_token = 2;
  for (TransformerLayer layer : {mixtral_block(), dropping, sink_block(), grouped}) {
    layer.norm = NormKind::kRmsNorm;
    constexpr std::int64_t kSequences = 2, kSequence = 9, kTokens = kSequences * kSequence;
    const std::int64_t h = layer.hidden;
    MixtureWeights weights{.router = numbers(layer.experts * h, 1, 0.4)};
    const std::int64_t width = (layer.mlp == MlpKind::kSwiglu ? 2 : 1) * layer.expert_ffn;
    const std::int64_t shared_width = layer.shared_ffn;  // a GELU has one matrix
    weights.up = numbers(layer.experts * width * h, 2, 0.3);
    weights.down = numbers(layer.experts * h * layer.expert_ffn, 3, 0.3);
    weights.shared_up = numbers(shared_width * h, 4, 0.3);
    weights.shared_down = numbers(h * layer.shared_ffn, 5, 0.3);
    if (layer.router_bias) weights.router_bias = numbers(layer.experts, 8, 0.3);
    if (layer.expert_bias) weights.up_bias = numbers(layer.experts * width, 9, 0.3);
    if (layer.expert_bias) weights.down_bias = numbers(layer.experts * h, 10, 0.3);
    Doubles x = numbers(kTokens * h, 6, 1);
    const Doubles dy = numbers(kTokens * h, 7, 1);

    TensorPool pool;
    const LayerWork work{.microbatch = kSequences, .sequence = kSequence};
    const CpuLayer block(layer, {work});
    std::vector<float> scratch(static_cast<std::size_t>(block.scratch_elements()));
    const CpuContext context{.kernels = CpuKernelSet(), .pool = &pool, .work = work, .scratch = scratch.data()};
    std::vector<float> common(static_cast<std::size_t>(parameter_count(layer) - expert_parameter_count(layer)));
    std::vector<float> experts(static_cast<std::size_t>(expert_parameter_count(layer)));
    std::vector<float> dcommon(common.size()), dexperts(experts.size());
    const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
    const auto at = [&](std::vector<float>& block, const std::string& name, const Doubles& values) {
      const std::int64_t offset = parameter_offset(layer, name);
      return offset < 0 ? std::span<float>{}
                        : std::span(block).subspan(static_cast<std::size_t>(offset), values.size());
    };
    const Doubles ones(static_cast<std::size_t>(h), 1);
    for (const char* gain : {"norm1.gain", "norm2.gain"}) copy(ones, at(common, gain, ones));
    copy(weights.router, at(common, "router.weight", weights.router));
    copy(weights.up, at(experts, "experts." + up + ".weight", weights.up));
    copy(weights.down, at(experts, "experts.down.weight", weights.down));
    copy(weights.router_bias, at(common, "router.bias", weights.router_bias));
    copy(weights.up_bias, at(experts, "experts." + up + ".bias", weights.up_bias));
    copy(weights.down_bias, at(experts, "experts.down.bias", weights.down_bias));
    if (layer.shared_ffn > 0) {
      copy(weights.shared_up, at(common, "shared." + up + ".weight", weights.shared_up));
      copy(weights.shared_down, at(common, "shared.down.weight", weights.shared_down));
    }
    const LayerCall call{.context = context,
                         .place = {.count = kSequences, .sequence = kSequence, .slice = {0, kSequence}},
                         .weights = common.data(),
                         .gradients = dcommon.data(),
                         .expert_weights = experts.data(),
                         .expert_gradients = dexperts.data()};
    const std::unique_ptr<LayerSaved> saved = block.make_saved();
    Tensor input = pool.take(kTokens * h), output_gradient = pool.take(kTokens * h);
    copy(x, input.values());
    copy(dy, output_gradient.values());

    const Result expected = naive_block(layer, weights, x, kSequences, kSequence);
    CHECK((expected.dropped > 0) == (layer.capacity_factor > 0));
    const Tensor output = block.forward(call, std::move(input), *saved);
    CHECK(difference(output.values(), expected.output) < 1e-5);
    const Tensor dinput = block.input_grad(call, std::move(output_gradient), *saved);
    block.weight_grad(call, *saved);
    CHECK(saved->balance_loss == doctest::Approx(expected.balance_loss).epsilon(1e-5));

    const auto slope = [&](double& value) {
      const auto objective = [&] {
        const Result moved = naive_block(layer, weights, x, kSequences, kSequence);
        return std::inner_product(dy.begin(), dy.end(), moved.output.begin(), moved.balance_loss);
      };
      const double kept = value, step = 1e-6;
      value = kept + step;
      const double above = objective();
      value = kept - step;
      const double below = objective();
      value = kept;
      return (above - below) / (2 * step);
    };
    const auto check = [&](std::span<const float> gradient, Doubles& values) {
      Doubles slopes;
      for (double& value : values) slopes.push_back(slope(value));
      CHECK(difference(gradient, slopes) < 1e-5);
    };
    check(dinput.values(), x);
    check(at(dcommon, "router.weight", weights.router), weights.router);
    check(at(dexperts, "experts." + up + ".weight", weights.up), weights.up);
    check(at(dexperts, "experts.down.weight", weights.down), weights.down);
    check(at(dcommon, "router.bias", weights.router_bias), weights.router_bias);
    check(at(dexperts, "experts." + up + ".bias", weights.up_bias), weights.up_bias);
    check(at(dexperts, "experts.down.bias", weights.down_bias), weights.down_bias);
    if (layer.shared_ffn == 0) continue;
    check(at(dcommon, "shared." + up + ".weight", weights.shared_up), weights.shared_up);
    check(at(dcommon, "shared.down.weight", weights.shared_down), weights.shared_down);
  }
}

}  // namespace plumb::test
