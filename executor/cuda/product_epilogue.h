#pragma once
// What a product of cuBLASLt does to its sums before it stores them, and when it is asked to: the only place that
// decides about it. Where it is not, kernels of their own do the same behind the product.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace plumb { inline namespace executor { namespace cuda {

/// Rows and columns are those of the product as cuBLASLt sees it, column-major: rows are a layer's outputs where biases
/// are added, columns where their gradient is summed.
struct ProductEpilogue {
  /// BIAS; GELU_AUX, GELU_AUX_BIAS: by tanh, what it is applied to is stored besides; BGRADB: sums of the right
  /// matrix's columns over the inner dimension, in fp32, which replace what is there. DGELU is not used: the gradient
  /// takes the place of what GELU was applied to (transformer_layer.cpp), where the product still reads. cuBLASLt is
  /// told to have C and D in one place, never D and what stands besides; behind a place of its own the copy would move
  /// two thirds of what GELU's own gradient moves. DGELU_BGRAD's sums would be rounded as D is stored, and come with I.
  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;       ///< as D is stored
  void* activated = nullptr;  ///< [columns, rows], likewise: what GELU is applied to
};

/// Most bytes of a bias's gradient.
inline constexpr std::size_t kBiasGradientBytes = std::size_t{1} << 20U;

/// Whether it is worth asking for: cuBLASLt wants strides of 8 elements and 16 bytes of what is stored besides, and
/// there is room for so long a gradient. It may have no algorithm even so.
bool may_take_in(const ProductEpilogue& epilogue, std::int64_t rows, std::int64_t columns);

/// Before the choice of an algorithm, and before each product: the addresses are part of its description.
void describe(cublasLtMatmulDesc_t operation, const ProductEpilogue& epilogue, std::int64_t rows);

}}}  // namespace plumb::executor::cuda
