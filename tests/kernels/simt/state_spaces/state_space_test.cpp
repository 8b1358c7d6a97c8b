#include "kernels/simt/state_spaces/state_space.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

Values scratch_of(const StateSpaceSize& size, bool is_backward) {
  const std::int64_t elements = size.batch * size.heads * simt::scratch_of(size, is_backward).elements;
  return Values(static_cast<std::size_t>(elements), std::numeric_limits<float>::quiet_NaN());
}

template <class S>
void check_states(const StateSpaceSize& size) {
  const std::int64_t rows = size.batch * size.sequence;
  std::vector<S> own_xbc = stored<S>(random_values(rows * size.row_width(), 1));
  std::vector<S> own_steps = stored<S>(random_values(rows * size.step_stride, 2));
  const std::vector<S> own_dy = stored<S>(random_values(rows * size.inner(), 3));
  const Values dy = widened_all(own_dy), decay_log = random_values(size.heads, 4),
               step_bias = random_values(size.heads, 5), skip = random_values(size.heads, 6);
  Values xbc = widened_all(own_xbc), steps = widened_all(own_steps), y(dy.size());
  Values memory(static_cast<std::size_t>(state_space_scratch_elements(size)));
  const StateSpaceParameters parameters{decay_log.data(), step_bias.data(), skip.data()};
  state_space_forward(y.data(), nullptr, {xbc.data(), steps.data()}, parameters, size, memory.data());
  std::vector<S> own_y(own_dy.size());
  Values scratch = scratch_of(size, false);
  run_on_host(
      simt::StateSpaceForward<S>{own_y.data(), own_xbc.data(), own_steps.data(), scratch.data(), parameters, size},
      kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());

  Values gradients = random_values(3 * size.heads, 7), own_gradients = gradients;
  const auto of = [&](Values& values) {
    return StateSpaceGradients{values.data(), values.data() + size.heads, values.data() + 2 * size.heads};
  };
  state_space_backward(xbc.data(), steps.data(), of(gradients), nullptr, dy.data(), nullptr, parameters, size,
                       memory.data());
  scratch = scratch_of(size, true);
  run_on_host(
      simt::StateSpaceBackward<S>{own_xbc.data(), own_steps.data(), scratch.data(), own_dy.data(), parameters, size},
      kBlocks, kLanes);
  run_on_host(simt::StateSpaceGroupSums<S>{own_xbc.data(), scratch.data(), size}, kBlocks, kLanes);
  run_on_host(simt::StateSpaceParameterSums{of(own_gradients), scratch.data(), size}, kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_xbc), xbc) < 2 * tolerance<S>());
  CHECK(relative_difference(widened_all(own_steps), steps) < 2 * tolerance<S>());
  CHECK(relative_difference(own_gradients, gradients) < 2 * tolerance<S>());
}

}  // namespace

TEST_CASE("a GPU's state space and all its gradients agree with the CPU's, in chunks and in one") {
  for (const StateSpaceSize size : {StateSpaceSize{.batch = 2,
                                   .sequence = 7,
                                   .heads = 4,
                                   .head_size = 3,
                                   .groups = 2,
                                   .state_size = 5,
                                   .chunk = 3,
                                   .step_stride = 6},
                                    StateSpaceSize{.batch = 1,
                                    .sequence = 9,
                                    .heads = 2,
                                    .head_size = 16,
                                    .groups = 1,
                                    .state_size = 8,
                                    .chunk = 16,
                                    .step_stride = 2},
                                    StateSpaceSize{.batch = 1,
                                    .sequence = 12,
                                    .heads = 3,
                                    .head_size = 1,
                                    .groups = 3,
                                    .state_size = 1,
                                    .chunk = 4,
                                    .step_stride = 3}}) {
    check_states<float>(size);
    check_states<Bf16>(size);
    check_states<Fp16>(size);
  }
}

TEST_CASE("a step is as exact where it is small as where it is large") {
  for (const float x : {-30.0F, -12.0F, -7.0F, -1.0F, 0.0F, 3.0F, 19.0F, 40.0F})
    CHECK(double(simt::softplus(x)) == doctest::Approx(std::log1p(std::exp(double(x)))).epsilon(5e-7));
}

}  // namespace plumb::test
