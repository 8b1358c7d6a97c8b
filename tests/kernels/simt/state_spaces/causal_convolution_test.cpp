#include "kernels/simt/state_spaces/causal_convolution.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

template <class S>
void check_convolution(const CausalConvolutionSize& size, bool has_bias) {
  const std::int64_t rows = size.batch * size.sequence;
  std::vector<S> own_x = stored<S>(random_values(rows * size.stride, 1));
  const std::vector<S> own_weight = stored<S>(random_values(size.channels * size.taps, 2));
  const std::vector<S> own_dy = stored<S>(random_values(rows * size.channels, 3));
  const Values weight = widened_all(own_weight), dy = widened_all(own_dy), bias = random_values(size.channels, 4);
  Values x = widened_all(own_x), y(own_dy.size());
  Values dweight = random_values(size.channels * size.taps, 5), dbias = random_values(size.channels, 6);
  Values own_dweight = dweight, own_dbias = dbias;
  const CausalConvolutionParameters parameters{weight.data(), has_bias ? bias.data() : nullptr};
  causal_convolution_forward(y.data(), x.data(), nullptr, parameters, size);
  causal_convolution_backward(x.data(), {dweight.data(), has_bias ? dbias.data() : nullptr}, nullptr, dy.data(),
                              nullptr, parameters, size);

  std::vector<S> own_y(own_dy.size());
  run_on_host(simt::CausalConvolutionForward<S>{own_y.data(), own_x.data(), own_weight.data(), parameters.bias, size},
              kBlocks, kLanes);
  run_on_host(
      simt::CausalConvolutionBackward<S>{own_x.data(), own_dweight.data(), has_bias ? own_dbias.data() : nullptr,
                                         own_dy.data(), own_weight.data(), parameters.bias, size},
      kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_y), y) < tolerance<S>());
  CHECK(relative_difference(widened_all(own_x), x) < tolerance<S>());
  CHECK(relative_difference(own_dweight, dweight) < tolerance<S>());
  CHECK(relative_difference(own_dbias, dbias) < tolerance<S>());
}

}  // namespace

TEST_CASE("a GPU's convolution over the last tokens and its gradients agree with the CPU's") {
  for (const bool has_bias : {true, false})
    for (const CausalConvolutionSize size :
         {CausalConvolutionSize{.batch = 2, .sequence = 7, .channels = 5, .taps = 4, .stride = 9},
          CausalConvolutionSize{.batch = 1, .sequence = 2, .channels = 90, .taps = 3, .stride = 90},
          CausalConvolutionSize{.batch = 3, .sequence = 11, .channels = 1, .taps = simt::kMostTaps, .stride = 2},
          CausalConvolutionSize{.batch = 1, .sequence = 1, .channels = 3, .taps = 1, .stride = 3}}) {
      check_convolution<float>(size, has_bias);
      check_convolution<Bf16>(size, has_bias);
      check_convolution<Fp16>(size, has_bias);
    }
}

}  // namespace plumb::test
