#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

/// A size for each axis of an image; those that it has not are 1 (paddings 0).
constexpr std::size_t kMostAxes = 3;
using AxisSizes = std::array<std::int64_t, kMostAxes>;
constexpr AxisSizes kOnes{1, 1, 1}, kZeros{};

struct Image {
  std::size_t axes = 2;  ///< tokens; rows and columns; planes, rows and columns
  AxisSizes size = kOnes;
  std::int64_t channels = 0;
};

Image image_of(const OperatorInputs& in) {
  const TensorShape& shape = in.shape();
  if (in.nodes[0]->tokens || shape.size() < 2 || shape.size() > kMostAxes + 1) {
    in.fail(
        fmt::format("its input is {}, and an image is [height, width, channels], [depth, height, width, channels] "
                    "or [tokens, channels]",
                    to_text(shape)));
  }
  Image image{.axes = shape.size() - 1, .channels = shape.back()};
  std::copy(shape.begin(), shape.end() - 1, image.size.begin());
  return image;
}

TensorShape shape_of(const Image& image) {
  TensorShape shape(image.size.begin(), image.size.begin() + static_cast<std::ptrdiff_t>(image.axes));
  shape.push_back(image.channels);
  return shape;
}

std::int64_t product_of(const AxisSizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Reads one number for all axes, or one for each. `smallest` is that of the axes which the image has not, too.
AxisSizes sizes_of(const OperatorInputs& in, const Image& image, std::string_view key, std::int64_t smallest,
                   std::optional<AxisSizes> fallback) {
  if (!in.attributes.has(key) && fallback) return *fallback;
  AxisSizes sizes = smallest > 0 ? kOnes : kZeros;
  const nlohmann::json& value = in.attributes.raw(key);
  if (value.is_array()) {
    const std::vector<std::int64_t> given = in.attributes.integers(key);
    if (given.size() != image.axes || image.axes == 1)
      in.attributes.fail(key,
                         "give one number, or of an image one for each axis: rows and columns, planes before them");
    std::ranges::copy(given, sizes.begin());
  } else {
    const std::int64_t size =
        smallest > 0 ? in.attributes.positive_integer(key) : in.attributes.non_negative_integer(key);
    std::fill_n(sizes.begin(), image.axes, size);
  }
  if (std::ranges::min(sizes) < smallest) in.attributes.fail(key, fmt::format("give {} or more", smallest));
  return sizes;
}

struct Windows {
  AxisSizes kernel = kOnes, stride = kOnes, padding = kZeros, dilation = kOnes;

  /// Returns the places from the first to the last that a window covers along an axis.
  std::int64_t reach(std::size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

Windows convolution_windows(const OperatorInputs& in, const Image& image) {
  return {.kernel = sizes_of(in, image, "kernel", 1, {}),
          .stride = sizes_of(in, image, "stride", 1, kOnes),
          .padding = sizes_of(in, image, "padding", 0, kZeros),
          .dilation = sizes_of(in, image, "dilation", 1, kOnes)};
}

std::string_view axis_name(const Image& image, std::size_t axis) {
  constexpr std::string_view kNames[] = {"planes", "rows", "columns"};
  return kNames[image.axes == kMostAxes ? axis : axis + 1];
}

Image windows_over(const OperatorInputs& in, const Image& image, const Windows& windows, bool ceil) {
  Image output = image;
  for (std::size_t i = 0; i < image.axes; ++i) {
    const std::int64_t reach = windows.reach(i);
    const std::int64_t room = image.size[i] + 2 * windows.padding[i] - reach;
    if (room < 0) {
      in.fail(fmt::format(
          "a window of {} does not fit into the {} {} of its input {}: give a smaller kernel or more padding", reach,
          image.size[i] + 2 * windows.padding[i], axis_name(image, i), to_text(in.shape())));
    }
    output.size[i] = room / windows.stride[i] + 1;
    // This is PyTorch's rule: a last window may hang over, but must begin inside the input or its left padding.
    const bool more = ceil && room % windows.stride[i] != 0 &&
                      output.size[i] * windows.stride[i] < image.size[i] + windows.padding[i];
    if (more) ++output.size[i];
  }
  return output;
}

/// True for an image of rows and columns with as many of both.
bool is_square(const Image& image, const AxisSizes& sizes) {
  return image.axes == 2 && sizes[0] == sizes[1];
}

/// Reads the groups that divide channels and filters.
std::int64_t groups_of(const OperatorInputs& in, std::int64_t channels, std::int64_t filters) {
  const std::int64_t groups = in.attributes.positive_integer_or("groups", 1);
  if (channels % groups != 0 || filters % groups != 0) {
    in.attributes.fail("groups",
                       fmt::format("{} groups do not divide {} channels and {} filters: give a divisor of both", groups,
                                   channels, filters));
  }
  return groups;
}

/// Adds the product of a convolution that a window at each of `places` takes part in, of so many columns and so deep a
/// sum in each group. The input and the output move once.
void add_windows_product(GraphNode& node, const OperatorInputs& in, std::int64_t groups, std::int64_t places,
                         std::int64_t columns, std::int64_t depth) {
  add_product(node, places, columns, depth);
  const double moved = static_cast<double>(element_count(in.shape()) + element_count(node.shape));
  const double weights = static_cast<double>(groups * columns * depth);
  for (auto* pass : {&node.forward, &node.input_grad, &node.weight_grad}) {
    pass->back().count = groups;
    pass->back().elements = moved;
    pass->back().fixed_elements = pass == &node.weight_grad ? 2 * weights : weights;
  }
}

/// Adds a bias to each place of the output.
void add_bias(GraphNode& node) {
  const double area = static_cast<double>(element_count(node.shape));
  node.forward.push_back(traffic(2 * area));
  node.weight_grad.push_back(traffic(area));
}

GraphNode convolution(const OperatorInputs& in) {
  const Image image = image_of(in);
  const std::int64_t filters = in.attributes.positive_integer("filters");
  const Windows windows = convolution_windows(in, image);
  const std::int64_t groups = groups_of(in, image.channels, filters);
  const bool bias = in.attributes.boolean_or("bias", true);
  const bool relu = in.attributes.has("activation") && in.attributes.choice("activation", {"none", "relu"}) == "relu";
  Image output = windows_over(in, image, windows, false);
  output.channels = filters;

  GraphNode node{.shape = shape_of(output)};
  const std::int64_t window = product_of(windows.kernel) * image.channels / groups;
  node.parameters.push_back({"weight", {filters, window}});
  if (bias) node.parameters.push_back({"bias", {filters}});
  const bool runs = bias && is_square(image, windows.kernel) && is_square(image, windows.stride) &&
                    is_square(image, windows.padding) && windows.dilation == kOnes;
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
  add_windows_product(node, in, groups, product_of(output.size), filters / groups, window);
  const double area = static_cast<double>(element_count(node.shape));
  if (bias) add_bias(node);
  if (relu) {
    node.forward.push_back(traffic(2 * area));
    node.input_grad.insert(node.input_grad.begin(), traffic(2 * area));
    node.own.push_back(
        {.name = "relu mask", .elements = (element_count(node.shape) + 31) / 32, .single_precision = true});
  }
  node.saves_input = {true};
  return node;
}

/// Moves its windows over the output, as a convolution's backward does: each place of the input gives a window of the
/// output all its filters. `output_padding` makes the output larger at its end.
GraphNode transposed_convolution(const OperatorInputs& in) {
  const Image image = image_of(in);
  const std::int64_t filters = in.attributes.positive_integer("filters");
  const Windows windows = convolution_windows(in, image);
  const AxisSizes more = sizes_of(in, image, "output_padding", 0, kZeros);
  const std::int64_t groups = groups_of(in, image.channels, filters);
  Image output = image;
  output.channels = filters;
  for (std::size_t i = 0; i < image.axes; ++i) {
    output.size[i] = (image.size[i] - 1) * windows.stride[i] + windows.reach(i) - 2 * windows.padding[i] + more[i];
    if (output.size[i] < 1)
      in.fail(fmt::format("its padding leaves no {} of the output: give less", axis_name(image, i)));
  }
  const std::int64_t window = product_of(windows.kernel) * filters / groups;
  GraphNode node{.shape = shape_of(output), .parameters = {{"weight", {image.channels, window}}}};
  add_windows_product(node, in, groups, product_of(image.size), window, image.channels / groups);
  if (in.attributes.boolean_or("bias", true)) {
    node.parameters.push_back({"bias", {filters}});
    add_bias(node);
  }
  node.saves_input = {true};
  return node;
}

GraphNode pooling(const OperatorInputs& in, PoolingKind kind) {
  const Image image = image_of(in);
  const AxisSizes kernel = sizes_of(in, image, "kernel", 1, {});
  const Windows windows{.kernel = kernel,
                        .stride = sizes_of(in, image, "stride", 1, kernel),
                        .padding = sizes_of(in, image, "padding", 0, kZeros)};
  const bool ceil = in.attributes.boolean_or("ceil", false);
  GraphNode node{.shape = shape_of(windows_over(in, image, windows, ceil))};
  const bool runs = !ceil && is_square(image, kernel) && is_square(image, windows.stride) && windows.padding == kZeros;
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
  const AxisSizes size = sizes_of(in, image, "size", 1, {});
  Image output = image;
  output.size = size;
  GraphNode node{.shape = shape_of(output)};
  if (is_square(image, size) && is_square(image, image.size) && image.size[0] % size[0] == 0) {
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
                                                   {"max_pooling", 1, 1, max_pooling},
                                                   {"transposed_convolution", 1, 1, transposed_convolution}};
  return kOperators;
}

}}  // namespace plumb::planner
