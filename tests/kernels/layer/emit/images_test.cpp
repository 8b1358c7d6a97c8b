// Convolutions and poolings by their numbers, on published networks.

#include <doctest/doctest.h>

#include "kernels/layer.h"

namespace plumb::test {
namespace {

/// The five convolutions and three linear layers of Krizhevsky et al. 2012, on images of 227 x 227.
std::vector<Layer> alexnet_parameters() {
  return {ConvolutionLayer{.height = 227, .width = 227, .channels = 3, .filters = 96, .kernel = 11, .stride = 4},
          ConvolutionLayer{
              .height = 27, .width = 27, .channels = 96, .filters = 256, .kernel = 5, .padding = 2, .groups = 2},
          ConvolutionLayer{.height = 13, .width = 13, .channels = 256, .filters = 384, .kernel = 3, .padding = 1},
          ConvolutionLayer{
              .height = 13, .width = 13, .channels = 384, .filters = 384, .kernel = 3, .padding = 1, .groups = 2},
          ConvolutionLayer{
              .height = 13, .width = 13, .channels = 384, .filters = 256, .kernel = 3, .padding = 1, .groups = 2},
          LinearLayer{.in = 9216, .out = 4096},
          LinearLayer{.in = 4096, .out = 4096},
          LinearLayer{.in = 4096, .out = 1000}};
}

double flops(const Layer& layer, const LayerWork& work, Pass pass) {
  double sum = 0;
  for (const KernelCall& call : layer_kernels(layer, work, pass))
    if (call.kind != KernelKind::kBiasForward && call.kind != KernelKind::kReluForward) sum += call.flops;
  return sum;
}

}  // namespace

TEST_CASE("AlexNet in two groups has its published 60.97 million parameters") {
  std::int64_t count = 0;
  for (const Layer& layer : alexnet_parameters()) count += parameter_count(layer);
  CHECK(count == 60'965'224);
}

TEST_CASE("AlexNet in two groups multiplies and adds 724 million times an image") {
  // 55*55*96*363 + 27*27*256*1200 + 13*13*384*2304 + 13*13*384*1728 + 13*13*256*1728 + 58 621 952 products.
  double products = 0;
  for (const Layer& layer : alexnet_parameters()) products += flops(layer, {}, Pass::kForward) / 2;
  CHECK(products == 724'406'816);
}

TEST_CASE("a window behind padding and stride counts as the papers round it: down") {
  CHECK(windows_in(224, 11, 4, 2) == 55);
  CHECK(windows_in(227, 11, 4) == 55);
  CHECK(windows_in(55, 3, 2) == 27);
  CHECK(windows_in(224, 3, 1, 1) == 224);
}

TEST_CASE("a convolution and a pooling hand on their windows, and take what they are given") {
  const Layer convolution = ConvolutionLayer{.height = 9, .width = 7, .channels = 2, .filters = 5, .kernel = 3};
  const Layer pooling = PoolingLayer{.height = 7, .width = 5, .channels = 5, .kernel = 3, .stride = 2};
  const LayerWork work{.microbatch = 4};
  CHECK(input_elements(convolution, work) == 4 * 9 * 7 * 2);
  CHECK(output_elements(convolution, work) == 4 * 7 * 5 * 5);
  CHECK(input_elements(pooling, work) == output_elements(convolution, work));
  CHECK(output_elements(pooling, work) == 4 * 3 * 2 * 5);
}

TEST_CASE("a ReLU costs a bit an element, and without an input gradient the convolution's input pass is the ReLU's") {
  ConvolutionLayer layer{.height = 8, .width = 8, .channels = 1, .filters = 4, .kernel = 1, .input_grad = false};
  const std::vector<SavedTensor> saved = saved_tensors(layer_program(layer, {}));
  CHECK(saved[1].elements == 8 * 8 * 4 / 32);
  CHECK(layer_kernels(layer, {}, Pass::kInputGrad).size() == 1);
  layer.relu = false;
  CHECK(layer_kernels(layer, {}, Pass::kInputGrad).empty());
}

}  // namespace plumb::test
