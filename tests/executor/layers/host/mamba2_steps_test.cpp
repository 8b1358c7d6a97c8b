// Mamba-2's block against one that is written down token by token (Dao & Gu 2024): projection, convolution, recurrence,
// gated norm, projection.

#include "executor/layers/host/mamba2_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/executor/layers/host/written_down.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr LayerWork kTwoSequences{.microbatch = 2, .sequence = 5};

double silu_of(double x) {
  return x / (1 + std::exp(-x));
}

/// The recurrence of one sequence, a token at a time.
class Recurrence {
 public:
  Recurrence(const Mamba2Mixer& layer, double epsilon, const Weights& of)
      : layer_(layer),
        epsilon_(epsilon),
        of_(of),
        states_(static_cast<std::size_t>(layer.inner() * layer.state_size)) {}

  /// Returns the mixer's output [h] for the next token's normed input [h].
  Doubles next(const Doubles& input) {
    Doubles row = multiplied(of_.at("mixer_in.weight"), input);
    if (layer_.linear_bias) add(row, of_.at("mixer_in.bias"));
    const auto x_begin = row.begin() + layer_.inner(), steps = x_begin + layer_.convolved();
    past_.push_back(Doubles(x_begin, steps));
    const Doubles gated = gate(outputs(convolved(), Doubles(steps, row.end())), row);
    Doubles output = multiplied(of_.at("mixer_out.weight"), gated);
    if (layer_.linear_bias) add(output, of_.at("mixer_out.bias"));
    return output;
  }

 private:
  static void add(Doubles& to, const Doubles& bias) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += bias[i];
  }
  double weight(const char* name, std::int64_t i) const { return of_.at(name)[static_cast<std::size_t>(i)]; }

  Doubles convolved() const {
    Doubles sums;
    for (std::int64_t c = 0; c < layer_.convolved(); ++c) {
      double sum = weight("convolution.bias", c);
      for (std::int64_t k = 0; k < layer_.taps; ++k) {
        const std::int64_t token = std::ssize(past_) - layer_.taps + k;
        if (token >= 0)
          sum += weight("convolution.weight", c * layer_.taps + k) *
                 past_[static_cast<std::size_t>(token)][static_cast<std::size_t>(c)];
      }
      sums.push_back(silu_of(sum));
    }
    return sums;
  }

  Doubles outputs(const Doubles& xbc, const Doubles& raw) {
    const std::int64_t p = layer_.head_size, n = layer_.state_size;
    Doubles y;
    for (std::int64_t head = 0; head < layer_.heads; ++head) {
      const double step = std::log1p(std::exp(raw[static_cast<std::size_t>(head)] + weight("step.bias", head)));
      const double decay = std::exp(-std::exp(weight("decay_log", head)) * step);
      const auto b = xbc.begin() + layer_.inner() + head / (layer_.heads / layer_.groups) * n;
      const auto c = b + layer_.groups * n;
      for (std::int64_t i = head * p; i < (head + 1) * p; ++i) {
        const double x = xbc[static_cast<std::size_t>(i)];
        double sum = weight("skip", head) * x;
        for (std::int64_t j = 0; j < n; ++j) {
          double& state = states_[static_cast<std::size_t>(i * n + j)];
          state = decay * state + step * x * b[j];
          sum += state * c[j];
        }
        y.push_back(sum);
      }
    }
    return y;
  }

  /// `row` begins with z.
  Doubles gate(const Doubles& y, const Doubles& row) const {
    const std::int64_t channels = layer_.inner() / layer_.groups;
    Doubles all;
    for (std::int64_t group = 0; group < layer_.groups; ++group) {
      Doubles gated, gain;
      for (std::int64_t c = group * channels; c < (group + 1) * channels; ++c) {
        gated.push_back(y[static_cast<std::size_t>(c)] * silu_of(row[static_cast<std::size_t>(c)]));
        gain.push_back(weight("mixer_norm.gain", c));
      }
      const Doubles scaled = normed(gated, gain, epsilon_);
      all.insert(all.end(), scaled.begin(), scaled.end());
    }
    return all;
  }

  const Mamba2Mixer& layer_;
  double epsilon_;
  const Weights& of_;
  std::vector<Doubles> past_;  // [token] channels before the convolution
  Doubles states_;             // [H, P, N]
};

Doubles token_by_token(const TransformerLayer& layer, const Weights& of, const Doubles& x) {
  Doubles y;
  for (std::int64_t sequence = 0; sequence < kTwoSequences.microbatch; ++sequence) {
    Recurrence recurrence(std::get<Mamba2Mixer>(layer.states), layer.norm_epsilon, of);
    for (std::int64_t token = 0; token < kTwoSequences.sequence; ++token) {
      const auto first = x.begin() + (sequence * kTwoSequences.sequence + token) * layer.hidden;
      const Doubles own(first, first + layer.hidden);
      const Doubles branch = recurrence.next(normed(own, of.at("norm1.gain"), layer.norm_epsilon));
      for (std::size_t c = 0; c < own.size(); ++c) y.push_back(own[c] + branch[c]);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("a block of Mamba-2 and its gradients are those of one that is written down token by token") {
  for (const bool has_bias : {false, true}) {
    CAPTURE(has_bias);
    TransformerLayer layer = mamba2_block();
    std::get<Mamba2Mixer>(layer.states).linear_bias = has_bias;
    Weights weights;
    std::uint64_t stream = 0;
    for (const ParameterTensor& tensor : layer_parameters(layer)) {
      weights[tensor.name] = numbers(element_count(tensor), ++stream, 0.4);
      if (tensor.initial == InitialValues::kOnes)
        for (double& value : weights[tensor.name]) value += 1;
    }
    check_block(layer, kTwoSequences, weights,
                [&](const Weights& of, const Doubles& x) { return token_by_token(layer, of, x); });
  }
}

}  // namespace plumb::test
