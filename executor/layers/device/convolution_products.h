#pragma once
// A convolution on a device as products. The windows of some images at once become rows of patches (im2col), which
// are multiplied with the filters, group by group. There are T images [H, W, C] and outputs [P, F]; a filter has E
// elements.

#include <cstddef>
#include <cstdint>

#include "executor/kernels/device_kernels.h"
#include "kernels/cpu/images/convolution.h"

namespace plumb { inline namespace executor {

class ConvolutionProducts {
 public:
  ConvolutionProducts(const ConvolutionSize& size, std::int64_t element_bytes);

  /// Returns the bytes of patches, and of a group's output, that a pass needs besides its tensors.
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  /// y: [T, P, F]; x: [T, H, W, C]; filters: [F, E], stored.
  void forward(DeviceKernels& kernels, std::byte* y, const std::byte* x, const std::byte* filters,
               std::byte* workspace) const;
  void input_grad(DeviceKernels& kernels, std::byte* dx, const std::byte* dy, const std::byte* filters,
                  std::byte* workspace) const;
  /// Adds to dfilters, [F, E] in fp32.
  void weight_grad(DeviceKernels& kernels, float* dfilters, const std::byte* dy, const std::byte* x,
                   std::byte* workspace) const;

 private:
  std::int64_t group_filters() const { return size_.filters / size_.groups; }
  /// Returns the offset of an image's first output row, in a group's columns.
  std::int64_t column_bytes(std::int64_t image, std::int64_t group) const {
    return (image * pixels_ * size_.filters + group * group_filters()) * element_bytes_;
  }
  std::int64_t filter_offset(std::int64_t group) const { return group * group_filters() * patch_; }

  /// Calls visit(size of some images, the first of them, group).
  template <class Visit>
  void for_each_chunk(Visit visit) const;

  /// Returns the patches [images * P, E] of the input.
  const std::byte* patches_of(DeviceKernels& kernels, const std::byte* x, std::byte* workspace,
                              const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) const;
  /// Returns the output's gradient of one group, [images * P, F/G].
  const std::byte* gradient_of(DeviceKernels& kernels, const std::byte* dy, std::byte* workspace,
                               const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) const;

  ConvolutionSize size_;  // size for all images
  std::int64_t element_bytes_;
  std::int64_t patch_ = 0;            // E
  std::int64_t pixels_ = 0;           // P
  std::int64_t image_bytes_ = 0;      // bytes of an input image
  std::int64_t chunk_ = 1;            // images of a product
  std::int64_t group_at_ = 0;         // bytes in the workspace before [chunk, P, F/G], which several groups need
  std::int64_t workspace_bytes_ = 0;  // [chunk, P, E], and then that
};

}}  // namespace plumb::executor
