#include "tools/layer_models.h"

#include <algorithm>
#include <cassert>

namespace plumb {
namespace {

/// Builds a list of layers, each behind the shape of the one before.
class Stack {
 public:
  explicit Stack(const InputLayer& input)
      : layers_{input}, height_(input.height), width_(input.width), channels_(input.channels) {}

  Stack& convolution(std::int64_t filters, std::int64_t kernel, std::int64_t stride = 1, std::int64_t padding = 0,
                     std::int64_t groups = 1) {
    layers_.push_back(ConvolutionLayer{.height = height_,
                                       .width = width_,
                                       .channels = channels_,
                                       .filters = filters,
                                       .kernel = kernel,
                                       .stride = stride,
                                       .padding = padding,
                                       .groups = groups,
                                       .input_grad = layers_.size() > 1});
    height_ = windows_in(height_, kernel, stride, padding);
    width_ = windows_in(width_, kernel, stride, padding);
    channels_ = filters;
    return *this;
  }

  Stack& max_pooling(std::int64_t kernel, std::int64_t stride) {
    layers_.push_back(
        PoolingLayer{.height = height_, .width = width_, .channels = channels_, .kernel = kernel, .stride = stride});
    height_ = windows_in(height_, kernel, stride);
    width_ = windows_in(width_, kernel, stride);
    return *this;
  }

  Stack& linear(std::int64_t out, Activation activation = Activation::kNone, double dropout = 0) {
    layers_.push_back(LinearLayer{.in = height_ * width_ * channels_,
                                  .out = out,
                                  .activation = activation,
                                  .dropout = dropout,
                                  .input_grad = layers_.size() > 1});
    height_ = width_ = 1;
    channels_ = out;
    return *this;
  }

  Stack& mlp(std::int64_t ffn) {
    layers_.push_back(MlpLayer{.hidden = channels_, .ffn = ffn});
    return *this;
  }

  std::vector<Layer> ending_in(LossKind loss) {
    layers_.push_back(LossLayer{.width = channels_, .loss = loss});
    return layers_;
  }

 private:
  std::vector<Layer> layers_;
  std::int64_t height_, width_, channels_;
};

std::vector<Layer> alexnet(std::int64_t classes) {
  return Stack({.height = 224, .width = 224, .channels = 3})
      .convolution(96, 11, 4, 2)
      .max_pooling(3, 2)
      .convolution(256, 5, 1, 2, 2)
      .max_pooling(3, 2)
      .convolution(384, 3, 1, 1)
      .convolution(384, 3, 1, 1, 2)
      .convolution(256, 3, 1, 1, 2)
      .max_pooling(3, 2)
      .linear(4096, Activation::kRelu, 0.5)
      .linear(4096, Activation::kRelu, 0.5)
      .linear(classes)
      .ending_in(LossKind::kCrossEntropy);
}

std::vector<Layer> small_alexnet(std::int64_t classes) {
  return Stack({.height = 32, .width = 32, .channels = 3})
      .convolution(32, 5, 1, 2)
      .max_pooling(3, 2)
      .convolution(48, 5, 1, 2, 2)
      .max_pooling(3, 2)
      .convolution(64, 3, 1, 1)
      .convolution(64, 3, 1, 1, 2)
      .convolution(48, 3, 1, 1, 2)
      .max_pooling(3, 2)
      .linear(128, Activation::kRelu, 0.1)
      .linear(128, Activation::kRelu, 0.1)
      .linear(classes)
      .ending_in(LossKind::kCrossEntropy);
}

/// `repeats`: convolutions of each of the five sizes.
std::vector<Layer> vgg(const std::vector<int>& repeats, std::int64_t classes) {
  constexpr std::int64_t kFilters[] = {64, 128, 256, 512, 512};
  Stack stack({.height = 224, .width = 224, .channels = 3});
  for (std::size_t size = 0; size < repeats.size(); ++size) {
    for (int i = 0; i < repeats[size]; ++i) stack.convolution(kFilters[size], 3, 1, 1);
    stack.max_pooling(2, 2);
  }
  return stack.linear(4096, Activation::kRelu, 0.5)
      .linear(4096, Activation::kRelu, 0.5)
      .linear(classes)
      .ending_in(LossKind::kCrossEntropy);
}

std::vector<Layer> mlp(std::int64_t outputs) {
  constexpr std::int64_t kWidth = 64;
  Stack stack({.width = 32});
  stack.linear(kWidth, Activation::kGelu);
  for (int block = 0; block < 4; ++block) stack.mlp(4 * kWidth);
  return stack.linear(outputs).ending_in(LossKind::kSquaredError);
}

}  // namespace

const std::vector<std::string>& layer_model_names() {
  static const std::vector<std::string> kNames = {"alexnet", "alexnet-32", "mlp", "vgg-11", "vgg-16", "vgg-19"};
  return kNames;
}

bool is_layer_model(std::string_view name) {
  return std::ranges::find(layer_model_names(), name) != layer_model_names().end();
}

std::vector<Layer> layer_model(std::string_view name, std::int64_t outputs) {
  assert(is_layer_model(name));
  if (name == "alexnet") return alexnet(outputs);
  if (name == "alexnet-32") return small_alexnet(outputs);
  if (name == "vgg-11") return vgg({1, 1, 2, 2, 2}, outputs);
  if (name == "vgg-16") return vgg({2, 2, 3, 3, 3}, outputs);
  if (name == "vgg-19") return vgg({2, 2, 4, 4, 4}, outputs);
  return mlp(outputs);
}

}  // namespace plumb
