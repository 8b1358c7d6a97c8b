#include "kernels/cpu/images/convolution.h"

#include <algorithm>

#include "kernels/cpu/products/gemm.h"

namespace plumb { inline namespace kernels {
namespace {

struct Windows {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t group_channels;  // C/G
  std::int64_t filter;          // E
  std::int64_t group_filters;   // F/G

  explicit Windows(const ConvolutionSize& size)
      : rows((size.height + 2 * size.padding - size.kernel) / size.stride + 1),
        columns((size.width + 2 * size.padding - size.kernel) / size.stride + 1),
        group_channels(size.channels / size.groups),
        filter(size.kernel * size.kernel * group_channels),
        group_filters(size.filters / size.groups) {}

  std::int64_t pixels() const { return rows * columns; }
};

/// Calls visit(patch, group, y, x) for each run of C/G channels in the patches of an image: `patch` is the run's first
/// element in the patches, y and x are the row and column of the input, which may lie in the padding.
template <class Visit>
void for_each_run(const ConvolutionSize& size, const Windows& windows, Visit visit) {
  std::int64_t patch = 0;
  for (std::int64_t row = 0; row < windows.rows; ++row)
    for (std::int64_t column = 0; column < windows.columns; ++column)
      for (std::int64_t group = 0; group < size.groups; ++group)
        for (std::int64_t ky = 0; ky < size.kernel; ++ky)
          for (std::int64_t kx = 0; kx < size.kernel; ++kx, patch += windows.group_channels)
            visit(patch, group, row * size.stride + ky - size.padding, column * size.stride + kx - size.padding);
}

bool is_inside(const ConvolutionSize& size, std::int64_t y, std::int64_t x) {
  return y >= 0 && y < size.height && x >= 0 && x < size.width;
}

/// Cuts an image into patches. image: [H, W, C], patches: [P, G, K, K, C/G]
void image_to_patches(float* patches, const float* image, const ConvolutionSize& size, const Windows& windows) {
  for_each_run(size, windows, [&](std::int64_t patch, std::int64_t group, std::int64_t y, std::int64_t x) {
    if (is_inside(size, y, x))
      std::copy_n(image + (y * size.width + x) * size.channels + group * windows.group_channels, windows.group_channels,
                  patches + patch);
    else
      std::fill_n(patches + patch, windows.group_channels, 0.0F);
  });
}

/// Adds the patches to the image that they were cut out of.
void add_patches_to_image(float* image, const float* patches, const ConvolutionSize& size, const Windows& windows) {
  for_each_run(size, windows, [&](std::int64_t patch, std::int64_t group, std::int64_t y, std::int64_t x) {
    if (!is_inside(size, y, x)) return;
    float* pixel = image + (y * size.width + x) * size.channels + group * windows.group_channels;
    for (std::int64_t c = 0; c < windows.group_channels; ++c) pixel[c] += patches[patch + c];
  });
}

}  // namespace

std::int64_t convolution_scratch_elements(const ConvolutionSize& size) {
  const Windows windows(size);
  return windows.pixels() * size.groups * windows.filter;
}

void convolution_forward(float* y, const float* x, const float* filters, const ConvolutionSize& size, float* scratch) {
  const Windows windows(size);
  const GemmStrides strides{.x = size.groups * windows.filter, .y = size.filters};
  for (std::int64_t image = 0; image < size.images; ++image) {
    image_to_patches(scratch, x + image * size.height * size.width * size.channels, size, windows);
    for (std::int64_t group = 0; group < size.groups; ++group)
      linear_forward(y + image * windows.pixels() * size.filters + group * windows.group_filters,
                     scratch + group * windows.filter, filters + group * windows.group_filters * windows.filter,
                     {windows.pixels(), windows.group_filters, windows.filter}, strides);
  }
}

void convolution_input_grad(float* dx, const float* dy, const float* filters, const ConvolutionSize& size,
                            float* scratch) {
  const Windows windows(size);
  const GemmStrides strides{.x = size.groups * windows.filter, .y = size.filters};
  const std::int64_t image_elements = size.height * size.width * size.channels;
  std::fill_n(dx, size.images * image_elements, 0.0F);
  for (std::int64_t image = 0; image < size.images; ++image) {
    for (std::int64_t group = 0; group < size.groups; ++group)
      linear_input_grad(scratch + group * windows.filter,
                        dy + image * windows.pixels() * size.filters + group * windows.group_filters,
                        filters + group * windows.group_filters * windows.filter,
                        {windows.pixels(), windows.filter, windows.group_filters}, strides);
    add_patches_to_image(dx + image * image_elements, scratch, size, windows);
  }
}

void convolution_weight_grad(float* dfilters, const float* dy, const float* x, const ConvolutionSize& size,
                             float* scratch) {
  const Windows windows(size);
  const GemmStrides strides{.x = size.groups * windows.filter, .y = size.filters};
  for (std::int64_t image = 0; image < size.images; ++image) {
    image_to_patches(scratch, x + image * size.height * size.width * size.channels, size, windows);
    for (std::int64_t group = 0; group < size.groups; ++group)
      linear_weight_grad(dfilters + group * windows.group_filters * windows.filter,
                         dy + image * windows.pixels() * size.filters + group * windows.group_filters,
                         scratch + group * windows.filter, {windows.group_filters, windows.filter, windows.pixels()},
                         strides);
  }
}

}}  // namespace plumb::kernels
