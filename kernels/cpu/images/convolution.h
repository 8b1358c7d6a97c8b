#pragma once
// Convolution by im2col and GEMM (Chellapilla, Puri & Simard 2006), image by image: the window under each output pixel
// becomes a row of patches, and the convolution is a linear layer over these rows. Images are [height, width,
// channels]. KernelKind kConvolutionForward, kConvolutionInputGrad and kConvolutionWeightGrad.
//
//   P output pixels of an image, C channels, F filters, K kernel, G groups, E = K*K*C/G elements of a filter

#include <cstdint>

namespace plumb { inline namespace kernels {

/// The shape of KernelKind kConvolutionForward and its gradients.
struct ConvolutionSize {
  std::int64_t images = 0;    ///< b
  std::int64_t height = 0;    ///< H rows of the input
  std::int64_t width = 0;     ///< W columns of the input
  std::int64_t channels = 0;  ///< C
  std::int64_t filters = 0;   ///< F
  std::int64_t kernel = 0;    ///< K
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;  ///< G, divides C and F
};

/// Returns the elements of the patches of one image [P, G, K, K, C/G], which are the scratch that all three functions
/// need.
std::int64_t convolution_scratch_elements(const ConvolutionSize& size);

/// y = convolution of x with the filters, without bias. x: [b, H, W, C], filters: [F, E], y: [b, P, F]
void convolution_forward(float* y, const float* x, const float* filters, const ConvolutionSize& size, float* scratch);

/// Writes the input's gradient. dx: [b, H, W, C] (overwritten), dy: [b, P, F], filters: [F, E]
void convolution_input_grad(float* dx, const float* dy, const float* filters, const ConvolutionSize& size,
                            float* scratch);

/// Adds the filters' gradient, image by image in ascending order. dfilters: [F, E], dy: [b, P, F], x: [b, H, W, C]
void convolution_weight_grad(float* dfilters, const float* dy, const float* x, const ConvolutionSize& size,
                             float* scratch);

}}  // namespace plumb::kernels
