#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

/// A size for rows and one for columns; an image of one dimension has one column.
using Pair = std::array<std::int64_t, 2>;

struct Image {
  Pair size{};
  std::int64_t channels = 0;
  bool flat = false;  ///< true for [tokens, channels]
};

Image image_of(const OperatorInputs& in) {
  const TensorShape& shape = in.shape();
  if (in.nodes[0]->tokens || shape.size() < 2 || shape.size() > 3) {
    in.fail(fmt::format("its input is {}, and an image is [height, width, channels] or [tokens, channels]",
                        to_text(shape)));
  }
  if (shape.size() == 2) return {.size = {shape[0], 1}, .channels = shape[1], .flat = true};
  return {.size = {shape[0], shape[1]}, .channels = shape[2]};
}

TensorShape shape_of(const Image& image) {
  if (image.flat) return {image.size[0], image.channels};
  return {image.size[0], image.size[1], image.channels};
}

/// Reads one number for both dimensions, or one for each.
Pair pair_of(const OperatorInputs& in, const Image& image, std::string_view key, std::int64_t smallest,
             std::optional<Pair> fallback, std::int64_t beside) {
  if (!in.attributes.has(key) && fallback) return *fallback;
  Pair pair{};
  const nlohmann::json& value = in.attributes.raw(key);
  if (value.is_array()) {
    const std::vector<std::int64_t> sizes = in.attributes.integers(key);
    if (sizes.size() != 2 || image.flat)
      in.attributes.fail(key, "give one number, or of an image one for rows and one for columns");
    pair = {sizes[0], sizes[1]};
  } else {
    const std::int64_t size =
        smallest > 0 ? in.attributes.positive_integer(key) : in.attributes.non_negative_integer(key);
    pair = {size, image.flat ? beside : size};
  }
  if (pair[0] < smallest || pair[1] < smallest) in.attributes.fail(key, fmt::format("give {} or more", smallest));
  return pair;
}

struct Windows {
  Pair kernel{}, stride{}, padding{}, dilation{1, 1};
};

Image windows_over(const OperatorInputs& in, const Image& image, const Windows& windows, bool ceil) {
  Image output = image;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = windows.dilation[i] * (windows.kernel[i] - 1) + 1;
    const std::int64_t room = image.size[i] + 2 * windows.padding[i] - reach;
    if (room < 0) {
      in.fail(fmt::format(
          "a window of {} does not fit into the {} {} of its input {}: give a smaller kernel or more padding", reach,
          image.size[i] + 2 * windows.padding[i], i == 0 ? "rows" : "columns", to_text(in.shape())));
    }
    output.size[i] = room / windows.stride[i] + 1;
    // This is PyTorch's rule: a last window may hang over, but must begin inside the input or its left padding.
    const bool more = ceil && room % windows.stride[i] != 0 &&
                      output.size[i] * windows.stride[i] < image.size[i] + windows.padding[i];
    if (more) ++output.size[i];
  }
  return output;
}

bool is_square(const Pair& pair) {
  return pair[0] == pair[1];
}

GraphNode convolution(const OperatorInputs& in) {
  const Image image = image_of(in);
  const std::int64_t filters = in.attributes.positive_integer("filters");
  const Windows windows{.kernel = pair_of(in, image, "kernel", 1, {}, 1),
                        .stride = pair_of(in, image, "stride", 1, Pair{1, 1}, 1),
                        .padding = pair_of(in, image, "padding", 0, Pair{0, 0}, 0),
                        .dilation = pair_of(in, image, "dilation", 1, Pair{1, 1}, 1)};
  const std::int64_t groups = in.attributes.positive_integer_or("groups", 1);
  const bool bias = in.attributes.boolean_or("bias", true);
  const bool relu = in.attributes.has("activation") && in.attributes.choice("activation", {"none", "relu"}) == "relu";
  if (image.channels % groups != 0 || filters % groups != 0) {
    in.attributes.fail("groups",
                       fmt::format("{} groups do not divide {} channels and {} filters: give a divisor of both", groups,
                                   image.channels, filters));
  }
  Image output = windows_over(in, image, windows, false);
  output.channels = filters;

  GraphNode node{.shape = shape_of(output)};
  const std::int64_t window = windows.kernel[0] * windows.kernel[1] * image.channels / groups;
  node.parameters.push_back({"weight", {filters, window}});
  if (bias) node.parameters.push_back({"bias", {filters}});
  const bool runs = !image.flat && bias && is_square(windows.kernel) && is_square(windows.stride) &&
                    is_square(windows.padding) && windows.dilation == Pair{1, 1};
  if (runs) {
    node.layer = ConvolutionLayer{.height = image.size[0],
                                  .width = image.size[1],
                                  .channels = image.channels,
                                  .filters = filters,
                                  .kernel = windows.kernel[0],
                                  .stride = windows.stride[0],
                                  .padding = windows.padding[0],
                                  .groups = groups,
                                  .relu = relu,
                                  .input_grad = in.nodes[0]->needs_grad};
    return node;
  }
  add_product(node, output.size[0] * output.size[1], filters / groups, window);
  const double moved = static_cast<double>(element_count(in.shape()) + element_count(node.shape));
  const double weights = static_cast<double>(filters * window);
  for (auto* pass : {&node.forward, &node.input_grad, &node.weight_grad}) {
    pass->back().count = groups;
    pass->back().elements = moved;
    pass->back().fixed_elements = pass == &node.weight_grad ? 2 * weights : weights;
  }
  const double area = static_cast<double>(element_count(node.shape));
  if (bias) {
    node.forward.push_back(traffic(2 * area));
    node.weight_grad.push_back(traffic(area));
  }
  if (relu) {
    node.forward.push_back(traffic(2 * area));
    node.input_grad.insert(node.input_grad.begin(), traffic(2 * area));
    node.own.push_back(
        {.name = "relu mask", .elements = (element_count(node.shape) + 31) / 32, .single_precision = true});
  }
  node.saves_input = {true};
  return node;
}

GraphNode pooling(const OperatorInputs& in, PoolingKind kind) {
  const Image image = image_of(in);
  const Pair kernel = pair_of(in, image, "kernel", 1, {}, 1);
  const Windows windows{.kernel = kernel,
                        .stride = pair_of(in, image, "stride", 1, kernel, 1),
                        .padding = pair_of(in, image, "padding", 0, Pair{0, 0}, 0)};
  const bool ceil = in.attributes.boolean_or("ceil", false);
  GraphNode node{.shape = shape_of(windows_over(in, image, windows, ceil))};
  const bool runs =
      !image.flat && !ceil && is_square(kernel) && is_square(windows.stride) && windows.padding == Pair{0, 0};
  if (runs) {
    node.layer = PoolingLayer{.height = image.size[0],
                              .width = image.size[1],
                              .channels = image.channels,
                              .kernel = kernel[0],
                              .stride = windows.stride[0],
                              .pooling = kind};
    return node;
  }
  const bool average = kind == PoolingKind::kAverage;
  const std::int64_t output = element_count(node.shape);
  const auto moved = static_cast<double>(element_count(in.shape()) + (average ? 1 : 2) * output);
  node.forward.push_back(traffic(moved));
  node.input_grad.push_back(traffic(moved));
  if (!average) node.own.push_back({.name = "places of the largest", .elements = output, .single_precision = true});
  return node;
}

GraphNode max_pooling(const OperatorInputs& in) {
  return pooling(in, PoolingKind::kMax);
}
GraphNode average_pooling(const OperatorInputs& in) {
  return pooling(in, PoolingKind::kAverage);
}

/// Averages over windows whose number is the given size.
GraphNode adaptive_average_pooling(const OperatorInputs& in) {
  const Image image = image_of(in);
  const Pair size = pair_of(in, image, "size", 1, {}, 1);
  Image output = image;
  output.size = size;
  GraphNode node{.shape = shape_of(output)};
  if (!image.flat && is_square(size) && is_square(image.size) && image.size[0] % size[0] == 0) {
    const std::int64_t kernel = image.size[0] / size[0];
    node.layer = PoolingLayer{.height = image.size[0],
                              .width = image.size[1],
                              .channels = image.channels,
                              .kernel = kernel,
                              .stride = kernel,
                              .pooling = PoolingKind::kAverage};
    return node;
  }
  const auto moved = static_cast<double>(element_count(in.shape()) + element_count(node.shape));
  node.forward.push_back(traffic(moved));
  node.input_grad.push_back(traffic(moved));
  return node;
}

/// Normalises by the mean and variance of each channel over the batch: the forward reads the input twice, the backward
/// reads the input and its gradient twice.
GraphNode batch_norm(const OperatorInputs& in) {
  const std::int64_t channels = in.shape().back();
  const auto area = static_cast<double>(element_count(in.shape()));
  GraphNode node{.shape = in.shape(), .parameters = {{"gain", {channels}}, {"bias", {channels}}}};
  node.forward.push_back(traffic(3 * area));
  node.input_grad.push_back(traffic(5 * area));
  node.saves_input = {true};
  return node;
}

GraphNode flatten(const OperatorInputs& in) {
  return {.shape = {element_count(in.shape())}, .tokens = in.nodes[0]->tokens, .runs = true};
}

}  // namespace

const std::vector<Operator>& image_operators() {
  static const std::vector<Operator> kOperators = {{"adaptive_average_pooling", 1, 1, adaptive_average_pooling},
                                                   {"average_pooling", 1, 1, average_pooling},
                                                   {"batch_norm", 1, 1, batch_norm},
                                                   {"convolution", 1, 1, convolution},
                                                   {"flatten", 1, 1, flatten},
                                                   {"max_pooling", 1, 1, max_pooling}};
  return kOperators;
}

}}  // namespace plumb::planner
