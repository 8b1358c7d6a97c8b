#pragma once
// The operation that a cuBLASLt product applies to its sums before it stores them, and the condition under which it is
// asked for. No other file decides about it. Where a product has no epilogue, kernels of their own do the same behind
// it.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace plumb { inline namespace executor { namespace cuda {

/// Rows and columns are those of the product as cuBLASLt sees it, column-major: rows are a layer's outputs where biases
/// are added, and columns are its outputs where their gradient is summed.
struct ProductEpilogue {
  /// BIAS adds the bias. GELU_AUX and GELU_AUX_BIAS apply GELU by tanh and also store its input. BGRADB replaces `bias`
  /// by the sums of the right matrix's columns over the inner dimension, in fp32. DGELU is not used: its gradient would
  /// take the place of GELU's input (the programs of decoder blocks), which the product still reads, and cuBLASLt may have C and
  /// D in one place, but not D and the stored input. With a place of its own, the copy would move two thirds of what
  /// GELU's own gradient moves. The sums of DGELU_BGRAD would be rounded to the format of D, and come with I.
  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;       ///< in the format of D
  void* activated = nullptr;  ///< [columns, rows], in the format of D: the input of GELU
};

/// The most bytes of a bias's gradient.
inline constexpr std::size_t kBiasGradientBytes = std::size_t{1} << 20U;

/// True if the epilogue is worth asking for. cuBLASLt requires strides of 8 elements and addresses of 16 bytes for
/// GELU's input, and the gradient of the bias must fit its room. cuBLASLt may have no algorithm even so.
bool may_take_in(const ProductEpilogue& epilogue, std::int64_t rows, std::int64_t columns);

/// Sets the epilogue of a product. It is called before the choice of an algorithm and before each product, since the
/// addresses are part of the description.
void describe(cublasLtMatmulDesc_t operation, const ProductEpilogue& epilogue, std::int64_t rows);

}}}  // namespace plumb::executor::cuda
