#pragma once
// The three products of a linear layer by cuBLASLt (kernels/cpu/products/gemm.h has shapes and names), fp32 accumulation, by
// themselves or with what follows them (product_epilogue.h). The algorithm of each shape and epilogue is asked for
// once; split reductions are in an order that sizes decide, so that the same product has the same bits.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "executor/cuda/product_epilogue.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Memory of each stream with products: cuBLASLt's workspace, and behind it a bias's gradient.
inline constexpr std::size_t kProductWorkspaceBytes = std::size_t{32} << 20U;
inline constexpr std::size_t kAlgorithmWorkspaceBytes = kProductWorkspaceBytes - kBiasGradientBytes;

/// How cuBLASLt calls that format; none: fp32.
cudaDataType_t stored_type(std::optional<HalfFormat> half);

class MatrixProducts {
 public:
  /// `stored`: of x, y, weights and their gradients but for dweight, which is fp32.
  /// `multiprocessors`: that they run on; 0: all of the GPU's.
  explicit MatrixProducts(cudaDataType_t stored, int multiprocessors = 0);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  /// Takes the workspace of a stream, which the first product on it takes otherwise.
  void settle(cudaStream_t stream);

  void forward(void* y, const void* x, const void* weight, const GemmSize& size, cudaStream_t stream);
  void input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size, cudaStream_t stream);
  void weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size, cudaStream_t stream);

  // The same with an epilogue. False, or null: there is none for such a product, and nothing is enqueued.

  /// y = x W^T + bias. bias: stored, [n]
  bool forward_with_bias(void* y, const void* x, const void* weight, const void* bias, const GemmSize& size,
                         cudaStream_t stream);
  /// up = x W^T + bias (null: none), y = GELU by tanh of that before it is rounded.
  bool forward_with_gelu(void* y, void* up, const void* x, const void* weight, const void* bias, const GemmSize& size,
                         cudaStream_t stream);
  /// Besides sums of dy over its rows [m], in memory of the stream that its next product may take.
  const float* weight_grad_with_sums(float* dweight, const void* dy, const void* x, const GemmSize& size,
                                     cudaStream_t stream);

 private:
  /// out [rows, columns] = left * right, all column-major: left [rows, inner] and right [inner, columns] lie transposed
  /// where set.
  struct Product {
    std::int64_t rows = 0, columns = 0, inner = 0;
    bool left_transposed = false, right_transposed = false;
    bool adds = false;  // to what is there, in fp32
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    /// Bytes that the matrices' addresses are multiples of, as far as an algorithm may ask for it.
    std::uint32_t left_alignment = 1, right_alignment = 1, out_alignment = 1;

    // NOLINTNEXTLINE(modernize-use-nullptr): false alarm
    auto operator<=>(const Product&) const = default;
  };
  struct Prepared {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool exists = true;  // an algorithm; false only with an epilogue
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
  std::map<cudaStream_t, void*> workspaces_;  // streams run beside each other
};

}}}  // namespace plumb::executor::cuda
