#pragma once
// The three products of a linear layer by cuBLASLt (kernels/cpu/products/gemm.h has shapes and names), with fp32
// accumulation, alone or with the operation that follows them (product_epilogue.h). cuBLASLt is asked once for the
// algorithm of each shape and epilogue. Split reductions run in an order that sizes decide, so that the same product
// has the same bits.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "executor/machines/cuda/product_epilogue.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Memory for each stream with products: cuBLASLt's workspace, and behind it a bias's gradient.
inline constexpr std::size_t kProductWorkspaceBytes = std::size_t{32} << 20U;
inline constexpr std::size_t kAlgorithmWorkspaceBytes = kProductWorkspaceBytes - kBiasGradientBytes;

/// Returns cuBLASLt's type for a format; no format means fp32.
cudaDataType_t stored_type(std::optional<HalfFormat> half);

class MatrixProducts {
 public:
  /// `stored` is the type of x, y, weights and their gradients, except dweight, which is fp32. `multiprocessors` is the
  /// number that the products run on; 0 means all of the GPU's.
  explicit MatrixProducts(cudaDataType_t stored, int multiprocessors = 0);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  /// Allocates the workspace of a stream. Otherwise the first product on the stream does so.
  void settle(cudaStream_t stream);

  /// Returns the stream's memory for one algorithm. The stream's next product may overwrite it.
  float* scratch(cudaStream_t stream);

  void forward(void* y, const void* x, const void* weight, const GemmSize& size, cudaStream_t stream);
  void input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size, cudaStream_t stream);
  void weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size, cudaStream_t stream);

  // The products with an epilogue. They return false, or null, and enqueue nothing, if cuBLASLt has no such product.

  /// y = x W^T + bias. bias: stored, [n]
  bool forward_with_bias(void* y, const void* x, const void* weight, const void* bias, const GemmSize& size,
                         cudaStream_t stream);
  /// up = x W^T + bias (null: none), y = GELU by tanh of up before it is rounded.
  bool forward_with_gelu(void* y, void* up, const void* x, const void* weight, const void* bias, const GemmSize& size,
                         cudaStream_t stream);
  /// Also returns the sums of dy over its rows [m], in the stream's memory, which the stream's next product may
  /// overwrite.
  const float* weight_grad_with_sums(float* dweight, const void* dy, const void* x, const GemmSize& size,
                                     cudaStream_t stream);

 private:
  /// out [rows, columns] = left * right, all column-major. left is [rows, inner] and right [inner, columns]; a matrix
  /// is stored transposed where its flag is set.
  struct Product {
    std::int64_t rows = 0, columns = 0, inner = 0;
    bool left_transposed = false, right_transposed = false;
    bool adds = false;  // adds to `out`, in fp32
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    /// Bytes that the matrices' addresses are multiples of, up to the most that an algorithm may ask for.
    std::uint32_t left_alignment = 1, right_alignment = 1, out_alignment = 1;

    // NOLINTNEXTLINE(modernize-use-nullptr): false alarm
    auto operator<=>(const Product&) const = default;
  };
  struct Prepared {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool exists = true;  // false if cuBLASLt has no algorithm, which happens only with an epilogue
  };

  static Product forward_product(const GemmSize& size);
  static Product weight_grad_product(const GemmSize& size);
  const Prepared& prepared(const Product& product, const ProductEpilogue& epilogue);
  bool multiply(Product product, void* out, const void* left, const void* right, cudaStream_t stream,
                const ProductEpilogue& epilogue = {});

  const cudaDataType_t stored_;
  const std::int32_t multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Product, Prepared> prepared_;
  std::map<cudaStream_t, void*> workspaces_;  // one a stream, since streams run beside each other
};

}}}  // namespace plumb::executor::cuda
