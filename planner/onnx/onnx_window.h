#pragma once
// The windows that a convolution or a pooling moves over an image, by spatial axis.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/onnx/onnx_file.h"

namespace plumb { inline namespace planner {

struct OnnxWindow {
  std::int64_t kernel = 1, stride = 1, before = 0, behind = 0, dilation = 1;  ///< before and behind: padding
  std::int64_t output = 0;                                                    ///< places

  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }  ///< places from its first to its last
};

/// Returns the windows of a node over an image [N, C, spatial axes]. Throws SpecError "PLACE: ..." where they do not
/// fit.
std::vector<OnnxWindow> windows_of(const OnnxNode& node, const TensorShape& image,
                                   const std::vector<std::int64_t>& kernel, const std::string& place);

/// Returns the windows of a transposed convolution over its image, whose output is that much larger.
std::vector<OnnxWindow> transposed_windows_of(const OnnxNode& node, const TensorShape& image,
                                              const std::vector<std::int64_t>& kernel, const std::string& place);

}}  // namespace plumb::planner
