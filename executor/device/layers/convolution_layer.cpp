// Convolution, bias and ReLU on a device. The windows of some images at once become rows of patches, which are
// multiplied with the filters, group by group. The input has T images [H, W, C] and the output [P, F]; a filter has E
// elements.

#include <algorithm>

#include "executor/cpu/layers/layer.h"
#include "executor/device/layers/convolution_chunks.h"
#include "executor/device/layers/image_layers.h"
#include "kernels/simt/relu.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceConvolution : public DeviceLayer {
 public:
  DeviceConvolution(const ConvolutionLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        size_{.images = tokens_of(work),
              .height = layer.height,
              .width = layer.width,
              .channels = layer.channels,
              .filters = layer.filters,
              .kernel = layer.kernel,
              .stride = layer.stride,
              .padding = layer.padding,
              .groups = layer.groups},
        element_bytes_(element_bytes),
        filters_(parameter_offset(layer, "weight")),
        bias_(parameter_offset(layer, "bias")) {
    const simt::PatchGrid grid = simt::patch_grid(size_);
    patch_ = grid.patch;
    pixels_ = grid.rows * grid.columns;
    outputs_ = size_.images * pixels_ * layer.filters;
    image_bytes_ = layer.height * layer.width * layer.channels * element_bytes;
    input_ = place_tensor(DevicePlace::kLate, bytes_.late, size_.images * image_bytes_);
    output_gradient_ = place_tensor(DevicePlace::kLate, bytes_.late, outputs_ * element_bytes);
    if (layer.relu) mask_ = place_tensor(DevicePlace::kEarly, bytes_.early, simt::relu_mask_bytes(outputs_));

    chunk_ = images_of_chunk(size_, element_bytes);
    std::int64_t workspace = 0;
    if (!patches_are_images(size_))
      patches_ = place_tensor(DevicePlace::kWorkspace, workspace, chunk_ * patch_bytes_of_image(size_, element_bytes));
    if (layer.groups > 1)
      group_ = place_tensor(DevicePlace::kWorkspace, workspace, chunk_ * pixels_ * group_filters() * element_bytes);
    bytes_.forward_workspace = bytes_.backward_workspace = workspace;
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    auto* const y = static_cast<std::byte*>(output);
    for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
      const NormSize own{chunk.images * pixels_, group_filters()};
      std::byte* const to = y + column_bytes(image, group);
      std::byte* const product = layer_.groups > 1 ? address_of(call, group_) : to;
      call.kernels.linear_forward(product, patches_of(call, chunk, image, group), filters(call, group),
                                  {own.rows, own.columns, patch_});
      if (layer_.groups > 1) call.kernels.copy_columns(to, layer_.filters, product, own.columns, own);
    });
    const std::int64_t rows = size_.images * pixels_;
    if (layer_.relu)
      call.kernels.relu_forward(y, mask(call), call.vector(bias_), rows, layer_.filters);
    else
      call.kernels.bias_forward(y, call.vector(bias_), rows, layer_.filters);
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    if (layer_.relu) call.kernels.relu_backward(address_of(call, output_gradient_), mask(call), outputs_);
    if (!layer_.input_grad) return;
    auto* const dx = static_cast<std::byte*>(input_gradient);
    for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
      std::byte* const to = dx + image * image_bytes_;
      std::byte* const patches = patches_are_images(size_) ? to : address_of(call, patches_);
      call.kernels.linear_input_grad(patches, gradient_of(call, chunk, image, group), filters(call, group),
                                     {chunk.images * pixels_, patch_, group_filters()});
      if (patches != to) call.kernels.patches_to_image(to, patches, chunk, group);
    });
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    for_each_chunk([&](const ConvolutionSize& chunk, std::int64_t image, std::int64_t group) {
      call.kernels.linear_weight_grad(call.gradients + filters_ + group * group_filters() * patch_,
                                      gradient_of(call, chunk, image, group), patches_of(call, chunk, image, group),
                                      {group_filters(), patch_, chunk.images * pixels_});
    });
    call.kernels.bias_backward(call.gradients + bias_, address_of(call, output_gradient_), size_.images * pixels_,
                               layer_.filters);
  }

 private:
  std::int64_t group_filters() const { return layer_.filters / layer_.groups; }
  /// Returns the offset of an image's first output row, in a group's columns.
  std::int64_t column_bytes(std::int64_t image, std::int64_t group) const {
    return (image * pixels_ * layer_.filters + group * group_filters()) * element_bytes_;
  }
  std::uint8_t* mask(const DeviceLayerCall& call) const {
    return reinterpret_cast<std::uint8_t*>(address_of(call, mask_));
  }
  const std::byte* filters(const DeviceLayerCall& call, std::int64_t group) const {
    return call.weights + (filters_ + group * group_filters() * patch_) * element_bytes_;
  }

  /// Calls visit(size of some images, the first of them, group).
  template <class Visit>
  void for_each_chunk(Visit visit) const {
    for (std::int64_t image = 0; image < size_.images; image += chunk_) {
      ConvolutionSize chunk = size_;
      chunk.images = std::min(chunk_, size_.images - image);
      for (std::int64_t group = 0; group < layer_.groups; ++group) visit(chunk, image, group);
    }
  }

  /// Returns the patches [images * P, E] of the kept input.
  const std::byte* patches_of(const DeviceLayerCall& call, const ConvolutionSize& chunk, std::int64_t image,
                              std::int64_t group) const {
    const std::byte* const images = address_of(call, input_) + image * image_bytes_;
    if (patches_are_images(size_)) return images;
    call.kernels.image_to_patches(address_of(call, patches_), images, chunk, group);
    return address_of(call, patches_);
  }

  /// Returns the output's gradient of one group, [images * P, F/G].
  const std::byte* gradient_of(const DeviceLayerCall& call, const ConvolutionSize& chunk, std::int64_t image,
                               std::int64_t group) const {
    const std::byte* const from = address_of(call, output_gradient_) + column_bytes(image, group);
    if (layer_.groups == 1) return from;
    std::byte* const own = address_of(call, group_);
    call.kernels.copy_columns(own, group_filters(), from, layer_.filters, {chunk.images * pixels_, group_filters()});
    return own;
  }

  ConvolutionLayer layer_;
  ConvolutionSize size_;  // size for all images
  std::int64_t element_bytes_;
  std::int64_t filters_, bias_;
  std::int64_t patch_ = 0;        // E
  std::int64_t pixels_ = 0;       // P
  std::int64_t outputs_ = 0;      // elements of the output
  std::int64_t image_bytes_ = 0;  // bytes of an input image
  std::int64_t chunk_ = 1;        // images of a product
  DeviceLayerBytes bytes_;
  DeviceTensor input_;            // [T, H, W, C]
  DeviceTensor output_gradient_;  // [T, P, F]
  DeviceTensor mask_;             // one bit an output
  DeviceTensor patches_;          // [chunk, P, E]
  DeviceTensor group_;            // [chunk, P, F/G], if there are several groups
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_convolution(const ConvolutionLayer& layer, const LayerWork& work,
                                                     std::int64_t element_bytes) {
  return std::make_unique<DeviceConvolution>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
