#pragma once
// The three products of a linear layer by cuBLASLt (kernels/cpu/gemm.h has shapes and names), fp32 accumulation. The
// algorithm of each shape is asked for once; split reductions are in an order that sizes decide, so that the same
// product has the same bits.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

#include "kernels/cpu/gemm.h"

namespace plumb::cuda {

/// That cuBLASLt has on each stream with products.
inline constexpr std::size_t kProductWorkspaceBytes = std::size_t{32} << 20U;

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

 private:
  /// out [rows, columns] = left * right, all column-major: left [rows, inner] and right [inner, columns] lie transposed
  /// where set.
  struct Product {
    std::int64_t rows = 0, columns = 0, inner = 0;
    bool left_transposed = false, right_transposed = false;
    bool adds = false;  // to what is there, in fp32
    /// Bytes that the matrices' addresses are multiples of, as far as an algorithm may ask for it.
    std::uint32_t left_alignment = 1, right_alignment = 1, out_alignment = 1;

    auto operator<=>(const Product&) const = default;
  };
  struct Prepared {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };

  const Prepared& prepared(const Product& product);
  void multiply(Product product, void* out, const void* left, const void* right, cudaStream_t stream);

  const cudaDataType_t stored_;
  const std::int32_t multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Product, Prepared> prepared_;
  std::map<cudaStream_t, void*> workspaces_;  // streams run beside each other
};

}  // namespace plumb::cuda
