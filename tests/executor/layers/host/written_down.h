#pragma once
// A block on the CPU against one that is written down in double.

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "executor/layers/host/layer.h"
#include "tests/executor/layers/host/doubles.h"

namespace plumb::test {

using Weights = std::map<std::string, Doubles>;

inline Doubles multiplied(const Doubles& weight, const Doubles& x) {
  Doubles y(weight.size() / x.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = std::inner_product(x.begin(), x.end(), weight.begin() + static_cast<std::ptrdiff_t>(i * x.size()), 0.0);
  return y;
}

inline Doubles normed(Doubles x, const Doubles& gain, double epsilon) {
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= gain[i] / std::sqrt(squares / double(x.size()) + epsilon);
  return x;
}

/// Checks a block's output, and the gradients of its input and of these weights, against `written_down`, which returns
/// the output [T, h] from weights and an input; gradients by its differences. Other weights of the block are zeros.
inline void check_block(const Layer& layer, const LayerWork& work, Weights weights,
                        const std::function<Doubles(const Weights&, const Doubles&)>& written_down) {
  const std::int64_t elements = input_elements(layer, work);
  std::vector<float> parameters(static_cast<std::size_t>(parameter_count(layer))), gradients(parameters.size());
  const auto at = [&](std::vector<float>& all, const std::string& name) {
    return std::span(all).subspan(static_cast<std::size_t>(parameter_offset(layer, name)), weights[name].size());
  };
  for (const auto& [name, values] : weights) copy(values, at(parameters, name));
  Doubles x = numbers(elements, 90, 1);
  const Doubles dy = numbers(elements, 91, 1);

  TensorPool pool;
  const CpuLayer block(layer, {work});
  std::vector<float> scratch(static_cast<std::size_t>(block.scratch_elements()));
  const CpuContext context{.kernels = CpuKernelSet(), .pool = &pool, .work = work, .scratch = scratch.data()};
  const LayerCall call{.context = context,
                       .place = {.count = work.microbatch, .sequence = work.sequence, .slice = {0, work.sequence}},
                       .weights = parameters.data(),
                       .gradients = gradients.data()};
  const std::unique_ptr<LayerSaved> saved = block.make_saved();
  Tensor input = pool.take(elements), output_gradient = pool.take(elements);
  copy(x, input.values());
  copy(dy, output_gradient.values());
  const Tensor output = block.forward(call, std::move(input), *saved);
  CHECK(difference(output.values(), written_down(weights, x)) < 1e-5);
  const Tensor dinput = block.input_grad(call, std::move(output_gradient), *saved);
  block.weight_grad(call, *saved);

  const auto check = [&](std::span<const float> gradient, Doubles& values) {
    Doubles slopes;
    for (double& value : values) {
      const double kept = value, step = 1e-6;
      const auto objective = [&](double moved) {
        value = moved;
        const Doubles y = written_down(weights, x);
        return std::inner_product(dy.begin(), dy.end(), y.begin(), 0.0);
      };
      slopes.push_back((objective(kept + step) - objective(kept - step)) / (2 * step));
      value = kept;
    }
    CHECK(difference(gradient, slopes) < 1e-5);
  };
  check(dinput.values(), x);
  for (auto& [name, values] : weights) {
    CAPTURE(name);
    check(at(gradients, name), values);
  }
}

}  // namespace plumb::test
