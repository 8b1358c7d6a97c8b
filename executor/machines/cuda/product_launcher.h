#pragma once
// The part of a launcher of kernels (executor/kernels/simt_kernels.h) that cuBLASLt does, on the launcher's
// stream.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/matrix_products.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Multiplies tensors that are stored as S. `products` outlives it.
template <class S>
class ProductLauncher {
 public:
  ProductLauncher(MatrixProducts& products, cudaStream_t stream) : products_(&products), stream_(stream) {}

  void copy(void* to, const void* from, std::int64_t bytes) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_), "a copy");
  }
  float* scratch() { return products_->scratch(stream_); }
  void forward(S* y, const S* x, const S* weight, const GemmSize& size) {
    products_->forward(y, x, weight, size, stream_);
  }
  void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& size) {
    products_->input_grad(dx, dy, weight, size, stream_);
  }
  void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    products_->weight_grad(dweight, dy, x, size, stream_);
  }
  bool forward_with_bias(S* y, const S* x, const S* weight, const S* bias, const GemmSize& size) {
    return products_->forward_with_bias(y, x, weight, bias, size, stream_);
  }
  bool forward_with_gelu(S* y, S* up, const S* x, const S* weight, const S* bias, const GemmSize& size) {
    return products_->forward_with_gelu(y, up, x, weight, bias, size, stream_);
  }
  const float* weight_grad_with_sums(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    return products_->weight_grad_with_sums(dweight, dy, x, size, stream_);
  }

 protected:
  cudaStream_t stream() const { return stream_; }

 private:
  MatrixProducts* products_;
  cudaStream_t stream_;
};

}}}  // namespace plumb::executor::cuda
