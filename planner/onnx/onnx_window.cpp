#include "planner/onnx/onnx_window.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using SizesByAxis = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& place, const std::string& message) {
  throw SpecError(fmt::format("{}: {}: export the model again", place, message));
}

/// Returns the windows with their paddings as they stand, without outputs.
std::vector<OnnxWindow> given_windows(const OnnxNode& node, const TensorShape& image, const SizesByAxis& kernel,
                                      const std::string& place) {
  const std::size_t axes = image.size() - 2;
  const SizesByAxis strides = node.integers_or("strides", SizesByAxis(axes, 1));
  const SizesByAxis dilations = node.integers_or("dilations", SizesByAxis(axes, 1));
  const SizesByAxis pads = node.integers_or("pads", SizesByAxis(2 * axes, 0));
  if (kernel.size() != axes || strides.size() != axes || dilations.size() != axes || pads.size() != 2 * axes)
    refuse(place, fmt::format("its windows have not the {} axes of {}", axes, to_text(image)));
  std::vector<OnnxWindow> windows;
  for (std::size_t i = 0; i < axes; ++i) {
    windows.push_back({.kernel = kernel[i],
                       .stride = strides[i],
                       .before = pads[i],
                       .behind = pads[i + axes],
                       .dilation = dilations[i]});
    if (kernel[i] < 1 || strides[i] < 1 || dilations[i] < 1) refuse(place, "a window has no size");
  }
  return windows;
}

}  // namespace

std::vector<OnnxWindow> windows_of(const OnnxNode& node, const TensorShape& image,
                                   const std::vector<std::int64_t>& kernel, const std::string& place) {
  const std::string automatic = node.text_or("auto_pad", "NOTSET");
  const bool ceil = node.integer_or("ceil_mode", 0) != 0;
  std::vector<OnnxWindow> windows = given_windows(node, image, kernel, place);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    OnnxWindow& window = windows[i];
    const std::int64_t size = image[i + 2], reach = window.reach();
    if (automatic.starts_with("SAME")) {
      window.output = (size + window.stride - 1) / window.stride;
      const std::int64_t all = std::max<std::int64_t>(0, (window.output - 1) * window.stride + reach - size);
      window.before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      window.behind = all - window.before;
    } else if (automatic == "VALID") {
      window.before = window.behind = 0;
    }
    const std::int64_t room = size + window.before + window.behind - reach;
    if (room < 0) refuse(place, fmt::format("a window of {} does not fit into {}", reach, to_text(image)));
    window.output = room / window.stride + 1;
    if (ceil && room % window.stride != 0 && window.output * window.stride < size + window.before) ++window.output;
  }
  return windows;
}

std::vector<OnnxWindow> transposed_windows_of(const OnnxNode& node, const TensorShape& image,
                                              const std::vector<std::int64_t>& kernel, const std::string& place) {
  const std::string automatic = node.text_or("auto_pad", "NOTSET");
  std::vector<OnnxWindow> windows = given_windows(node, image, kernel, place);
  const SizesByAxis beyond = node.integers_or("output_padding", SizesByAxis(windows.size(), 0));
  const SizesByAxis asked = node.integers_or("output_shape", {});
  if (beyond.size() != windows.size() || (!asked.empty() && asked.size() != windows.size()))
    refuse(place, fmt::format("its output has not the {} axes of {}", windows.size(), to_text(image)));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    OnnxWindow& window = windows[i];
    if (automatic != "NOTSET") window.before = window.behind = 0;
    window.output = (image[i + 2] - 1) * window.stride + window.reach() - window.before - window.behind + beyond[i];
    if (automatic.starts_with("SAME")) window.output = image[i + 2] * window.stride;
    if (!asked.empty()) window.output = asked[i];
    if (window.output < 1) refuse(place, fmt::format("nothing is left of its output of {}", to_text(image)));
  }
  return windows;
}

}}  // namespace plumb::planner
