#include "executor/layers/device/convolution_products.h"

#include <algorithm>

#include "kernels/layer.h"
#include "kernels/simt/images/patches.h"

namespace plumb { inline namespace executor {
namespace {

/// The bytes of patches that one product takes; one image may have more.
constexpr std::int64_t kPatchBytes = std::int64_t{16} << 20;

/// True if a window is one pixel, so that there are no patches to cut out.
bool patches_are_images(const ConvolutionSize& size) {
  return size.kernel == 1 && size.stride == 1 && size.padding == 0 && size.groups == 1;
}

/// Returns the bytes of the patches of an image, for one group's channels.
std::int64_t patch_bytes_of_image(const simt::PatchGrid& grid, std::int64_t element_bytes) {
  return std::max<std::int64_t>(1, grid.rows * grid.columns * grid.patch * element_bytes);
}

}  // namespace

ConvolutionProducts::ConvolutionProducts(const ConvolutionSize& size, std::int64_t element_bytes)
    : size_(size), element_bytes_(element_bytes) {
  const simt::PatchGrid grid = simt::patch_grid(size_);
  patch_ = grid.patch;
  pixels_ = grid.rows * grid.columns;
  image_bytes_ = size.height * size.width * size.channels * element_bytes;
  const std::int64_t patch_bytes = patch_bytes_of_image(grid, element_bytes);
  chunk_ = std::clamp<std::int64_t>(kPatchBytes / patch_bytes, 1, std::max<std::int64_t>(1, size.images));
  if (!patches_are_images(size_)) group_at_ = aligned_bytes(chunk_ * patch_bytes);
  workspace_bytes_ = group_at_;
  if (size.groups > 1) workspace_bytes_ += aligned_bytes(chunk_ * pixels_ * group_filters() * element_bytes);
}

template <class Visit>
void ConvolutionProducts::for_each_chunk(Visit visit) const {
  for (std::int64_t image = 0; image < size_.images; image += chunk_) {
    ConvolutionSize chunk = size_;
    chunk.images = std::min(chunk_, size_.images - image);
    for (std::int64_t group = 0; group < size_.groups; ++group) visit(chunk, image, group);
  }
}

void ConvolutionProducts::forward(DeviceKernels& kernels, std::byte* y, const std::byte* x, const std::byte* filters,
                                  std::byte* workspace) const {
  for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
    const NormSize own{chunk.images * pixels_, group_filters()};
    std::byte* const to = y + column_bytes(image, group);
    std::byte* const product = size_.groups > 1 ? workspace + group_at_ : to;
    kernels.linear_forward(product, patches_of(kernels, x, workspace, chunk, image, group),
                           filters + filter_offset(group) * element_bytes_, {own.rows, own.columns, patch_});
    if (size_.groups > 1) kernels.copy_columns(to, size_.filters, product, own.columns, own);
  });
}

void ConvolutionProducts::input_grad(DeviceKernels& kernels, std::byte* dx, const std::byte* dy,
                                     const std::byte* filters, std::byte* workspace) const {
  for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
    std::byte* const to = dx + image * image_bytes_;
    std::byte* const patches = patches_are_images(size_) ? to : workspace;
    kernels.linear_input_grad(patches, gradient_of(kernels, dy, workspace, chunk, image, group),
                              filters + filter_offset(group) * element_bytes_,
                              {chunk.images * pixels_, patch_, group_filters()});
    if (patches != to) kernels.patches_to_image(to, patches, chunk, group);
  });
}

void ConvolutionProducts::weight_grad(DeviceKernels& kernels, float* dfilters, const std::byte* dy, const std::byte* x,
                                      std::byte* workspace) const {
  for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
    kernels.linear_weight_grad(
        dfilters + filter_offset(group), gradient_of(kernels, dy, workspace, chunk, image, group),
        patches_of(kernels, x, workspace, chunk, image, group), {group_filters(), patch_, chunk.images * pixels_});
  });
}

const std::byte* ConvolutionProducts::patches_of(DeviceKernels& kernels, const std::byte* x, std::byte* workspace,
                                                 const ConvolutionSize& chunk, std::int64_t image,
                                                 std::int64_t group) const {
  const std::byte* const images = x + image * image_bytes_;
  if (patches_are_images(size_)) return images;
  kernels.image_to_patches(workspace, images, chunk, group);
  return workspace;
}

const std::byte* ConvolutionProducts::gradient_of(DeviceKernels& kernels, const std::byte* dy, std::byte* workspace,
                                                  const ConvolutionSize& chunk, std::int64_t image,
                                                  std::int64_t group) const {
  const std::byte* const from = dy + column_bytes(image, group);
  if (size_.groups == 1) return from;
  std::byte* const own = workspace + group_at_;
  kernels.copy_columns(own, group_filters(), from, size_.filters, {chunk.images * pixels_, group_filters()});
  return own;
}

}}  // namespace plumb::executor
