#pragma once
// The sizes of a kernel on images, from the shape of its call (kernels/layer/kernel_call.h).

#include <cstdint>
#include <vector>

#include "kernels/cpu/images/convolution.h"
#include "kernels/cpu/images/pooling.h"

namespace plumb { inline namespace kernels {

inline ConvolutionSize convolution_size(const std::vector<std::int64_t>& s) {
  return {.images = s[0],
          .height = s[1],
          .width = s[2],
          .channels = s[3],
          .filters = s[4],
          .kernel = s[5],
          .stride = s[6],
          .padding = s[7],
          .groups = s[8]};
}

inline PoolingSize pooling_size(const std::vector<std::int64_t>& s) {
  return {.images = s[0], .height = s[1], .width = s[2], .channels = s[3], .kernel = s[4], .stride = s[5]};
}

}}  // namespace plumb::kernels
