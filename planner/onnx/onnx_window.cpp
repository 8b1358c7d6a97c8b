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

}  // namespace

std::vector<OnnxWindow> windows_of(const OnnxNode& node, const TensorShape& image,
                                   const std::vector<std::int64_t>& kernel, const std::string& place) {
  const std::size_t axes = image.size() - 2;
  const SizesByAxis strides = node.integers_or("strides", SizesByAxis(axes, 1));
  const SizesByAxis dilations = node.integers_or("dilations", SizesByAxis(axes, 1));
  const SizesByAxis pads = node.integers_or("pads", SizesByAxis(2 * axes, 0));
  const std::string automatic = node.text_or("auto_pad", "NOTSET");
  if (kernel.size() != axes || strides.size() != axes || dilations.size() != axes || pads.size() != 2 * axes)
    refuse(place, fmt::format("its windows have not the {} axes of {}", axes, to_text(image)));
  const bool ceil = node.integer_or("ceil_mode", 0) != 0;
  std::vector<OnnxWindow> windows;
  for (std::size_t i = 0; i < axes; ++i) {
    OnnxWindow window{.kernel = kernel[i], .stride = strides[i], .dilation = dilations[i]};
    if (window.kernel < 1 || window.stride < 1 || window.dilation < 1) refuse(place, "a window has no size");
    const std::int64_t size = image[i + 2], reach = window.dilation * (window.kernel - 1) + 1;
    if (automatic.starts_with("SAME")) {
      window.output = (size + window.stride - 1) / window.stride;
      const std::int64_t all = std::max<std::int64_t>(0, (window.output - 1) * window.stride + reach - size);
      window.before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      window.behind = all - window.before;
    } else if (automatic != "VALID") {
      window.before = pads[i];
      window.behind = pads[i + axes];
    }
    const std::int64_t room = size + window.before + window.behind - reach;
    if (room < 0) refuse(place, fmt::format("a window of {} does not fit into {}", reach, to_text(image)));
    window.output = room / window.stride + 1;
    if (ceil && room % window.stride != 0 && window.output * window.stride < size + window.before) ++window.output;
    windows.push_back(window);
  }
  return windows;
}

}}  // namespace plumb::planner
