// The chunked form against the recurrence, which is computed token by token in double, and its gradients against
// differences of the recurrence.

#include "kernels/cpu/state_spaces/state_space.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

/// Differences of a double over steps of 1e-3 are exact to about 1e-6, and the sums of the kernel to about 1e-6.
constexpr double kExact = 1e-5;
constexpr float kStep = 1e-3F;

constexpr StateSpaceSize kStates{
    .batch = 2, .sequence = 7, .heads = 4, .head_size = 3, .groups = 2, .state_size = 5, .chunk = 3, .step_stride = 6};

struct Operands {
  StateSpaceSize size;
  Values xbc, steps, earlier, decay_log, step_bias, skip;

  explicit Operands(const StateSpaceSize& of)
      : size(of),
        xbc(random_values(of.batch * of.sequence * of.row_width(), 1)),
        steps(random_values(of.batch * of.sequence * of.step_stride, 2)),
        earlier(random_values(of.state_elements(), 3)),
        decay_log(random_values(of.heads, 4)),
        step_bias(random_values(of.heads, 5)),
        skip(random_values(of.heads, 6)) {}

  StateSpaceInputs inputs() const { return {xbc.data(), steps.data(), earlier.data()}; }
  StateSpaceParameters parameters() const { return {decay_log.data(), step_bias.data(), skip.data()}; }
  Values scratch() const { return Values(static_cast<std::size_t>(state_space_scratch_elements(size))); }
};

struct Results {
  Values y, states;
};

/// h_t = exp(a step) h_{t-1} + step x_t B_t^T, y_t = h_t C_t + skip x_t, for each head of each sequence.
Results recurrence(const Operands& of) {
  const StateSpaceSize& size = of.size;
  const std::int64_t p = size.head_size, n = size.state_size;
  Results all{Values(static_cast<std::size_t>(size.batch * size.sequence * size.inner())), of.earlier};
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence)
    for (std::int64_t head = 0; head < size.heads; ++head) {
      const std::int64_t group = head / (size.heads / size.groups), state = (sequence * size.heads + head) * p * n;
      std::vector<double> h(of.earlier.begin() + state, of.earlier.begin() + state + p * n);
      for (std::int64_t t = 0; t < size.sequence; ++t) {
        const std::int64_t row = sequence * size.sequence + t;
        const float* const x = of.xbc.data() + row * size.row_width() + head * p;
        const float* const b = of.xbc.data() + row * size.row_width() + size.inner() + group * n;
        const float* const c = b + size.groups * n;
        const double raw =
            double(of.steps[std::size_t(row * size.step_stride + head)]) + of.step_bias[std::size_t(head)];
        const double step = std::log1p(std::exp(raw));
        const double decay = std::exp(-std::exp(double(of.decay_log[std::size_t(head)])) * step);
        for (std::int64_t i = 0; i < p; ++i) {
          double y = double(of.skip[std::size_t(head)]) * x[i];
          for (std::int64_t j = 0; j < n; ++j) {
            double& element = h[std::size_t(i * n + j)];
            element = decay * element + step * x[i] * b[j];
            y += element * c[j];
          }
          all.y[std::size_t(row * size.inner() + head * p + i)] = static_cast<float>(y);
        }
      }
      for (std::int64_t e = 0; e < p * n; ++e)
        all.states[std::size_t(state + e)] = static_cast<float>(h[std::size_t(e)]);
    }
  return all;
}

Results chunked(const Operands& of) {
  Results all{Values(static_cast<std::size_t>(of.size.batch * of.size.sequence * of.size.inner())),
              Values(of.earlier.size())};
  Values scratch = of.scratch();
  state_space_forward(all.y.data(), all.states.data(), of.inputs(), of.parameters(), of.size, scratch.data());
  return all;
}

struct StateGradients {
  Values xbc, steps, states, decay_log, step_bias, skip;
};

StateGradients gradients_of(const Operands& of, const Values& dy, const Values& dstates) {
  const auto heads = static_cast<std::size_t>(of.size.heads);
  StateGradients all{of.xbc, of.steps, dstates, Values(heads), Values(heads), Values(heads)};
  Values scratch = of.scratch();
  state_space_backward(all.xbc.data(), all.steps.data(), {all.decay_log.data(), all.step_bias.data(), all.skip.data()},
                       all.states.data(), dy.data(), of.earlier.data(), of.parameters(), of.size, scratch.data());
  return all;
}

}  // namespace

TEST_CASE("chunks of any length give the outputs and states of the recurrence") {
  for (const std::int64_t chunk : {1, 3, 7, 100}) {
    CAPTURE(chunk);
    StateSpaceSize size = kStates;
    size.chunk = chunk;
    const Operands of(size);
    const Results expected = recurrence(of), got = chunked(of);
    CHECK(relative_difference(got.y, expected.y) < 1e-6);
    CHECK(relative_difference(got.states, expected.states) < 1e-6);
  }
}

TEST_CASE("the gradients of a state space are those of the recurrence") {
  Operands of(kStates);
  const Values dy = random_values(kStates.batch * kStates.sequence * kStates.inner(), 7);
  const Values dstates = random_values(kStates.state_elements(), 8);
  const StateGradients got = gradients_of(of, dy, dstates);
  const auto objective = [&] {
    const Results results = recurrence(of);
    return weighted_sum(dy, results.y) + weighted_sum(dstates, results.states);
  };
  CHECK(gradient_error(of.xbc, got.xbc, objective, kStep) < kGradientTolerance);
  CHECK(gradient_error(of.earlier, got.states, objective, kStep) < kGradientTolerance);
  CHECK(gradient_error(of.decay_log, got.decay_log, objective, kStep) < kGradientTolerance);
  CHECK(gradient_error(of.step_bias, got.step_bias, objective, kStep) < kGradientTolerance);
  CHECK(gradient_error(of.skip, got.skip, objective, kStep) < kGradientTolerance);
  for (std::size_t row = 0; row < of.steps.size(); row += std::size_t(kStates.step_stride)) {
    for (std::size_t column = 4; column < 6; ++column)  // columns of others keep what they have
      CHECK(got.steps[row + column] == of.steps[row + column]);
  }
  Values raw(of.steps.size()), gradient(of.steps.size());
  for (std::size_t i = 0; i < raw.size(); ++i)
    gradient[i] = i % std::size_t(kStates.step_stride) < 4 ? got.steps[i] : 0;
  CHECK(gradient_error(of.steps, gradient, objective, kStep) < kGradientTolerance);
}

TEST_CASE("slices that pass their states on give what the whole sequence gives") {
  const Operands of(kStates);
  const Values dy = random_values(kStates.batch * kStates.sequence * kStates.inner(), 7);
  const Results whole = chunked(of);
  const StateGradients gradients = gradients_of(of, dy, Values(of.earlier.size()));
  // The first slice has 4 tokens and the second 3.
  const auto part_of = [](const Values& rows, std::int64_t width, std::int64_t first, std::int64_t count) {
    Values part;
    for (std::int64_t sequence = 0; sequence < kStates.batch; ++sequence) {
      const auto begin = rows.begin() + (sequence * kStates.sequence + first) * width;
      part.insert(part.end(), begin, begin + count * width);
    }
    return part;
  };
  const auto slice_of = [&](std::int64_t first, std::int64_t count) {
    Operands slice = of;
    slice.size.sequence = count;
    slice.xbc = part_of(of.xbc, kStates.row_width(), first, count);
    slice.steps = part_of(of.steps, kStates.step_stride, first, count);
    return slice;
  };
  Operands early = slice_of(0, 4), late = slice_of(4, 3);
  const Results of_early = chunked(early);
  late.earlier = of_early.states;
  const Results of_late = chunked(late);
  CHECK(relative_difference(of_early.y, part_of(whole.y, kStates.inner(), 0, 4)) < 1e-6);
  CHECK(relative_difference(of_late.y, part_of(whole.y, kStates.inner(), 4, 3)) < 1e-6);
  CHECK(relative_difference(of_late.states, whole.states) < 1e-6);

  const StateGradients back = gradients_of(late, part_of(dy, kStates.inner(), 4, 3), Values(of.earlier.size()));
  const StateGradients front = gradients_of(early, part_of(dy, kStates.inner(), 0, 4), back.states);
  CHECK(relative_difference(front.xbc, part_of(gradients.xbc, kStates.row_width(), 0, 4)) < kExact);
  CHECK(relative_difference(back.xbc, part_of(gradients.xbc, kStates.row_width(), 4, 3)) < kExact);
  CHECK(relative_difference(front.states, gradients.states) < kExact);
  Values decay_log = front.decay_log;
  for (std::size_t head = 0; head < decay_log.size(); ++head) decay_log[head] += back.decay_log[head];
  CHECK(relative_difference(decay_log, gradients.decay_log) < kExact);
}

}  // namespace plumb::test
