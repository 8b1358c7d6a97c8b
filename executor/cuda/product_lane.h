#pragma once
// A GPU's compute stream with matrix products, and the moments of what goes on beside them (nccl_devices.h).

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "executor/cuda/matrix_products.h"
#include "kernels/half_format.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Of the device that is current in all calls, and when it goes.
class ProductLane {
 public:
  /// Products x W^T of [edge, edge] matrices of numbers between -1 and 1. Throws RunError if there is no memory for
  /// them.
  ProductLane(std::optional<HalfFormat> half, std::int64_t edge);
  ~ProductLane();
  ProductLane(const ProductLane&) = delete;
  ProductLane& operator=(const ProductLane&) = delete;

  bool is_of(std::optional<HalfFormat> half, std::int64_t edge) const { return half == half_ && edge == edge_; }

  void multiply(int products);

  // In this order, around what is enqueued on `other`:
  void let_follow(cudaStream_t other);  ///< `other` goes on behind the products so far
  void begin(cudaStream_t other);       ///< products go on behind `other`: this is the moment that counts
  void end(cudaStream_t other);         ///< of what is on both; then `other` is behind the products

  /// From the beginning to the end of the products, and of what was on `other`; once both are over.
  Seconds products_time() const;
  Seconds other_time() const;

 private:
  void release();

  const std::optional<HalfFormat> half_;
  const std::int64_t edge_;
  MatrixProducts products_;
  cudaStream_t stream_ = nullptr;
  void* left_ = nullptr;   // [edge, edge]
  void* right_ = nullptr;  // [edge, edge]
  void* out_ = nullptr;    // [edge, edge]
  cudaEvent_t begun_ = nullptr, computed_ = nullptr, other_over_ = nullptr;
};

}}}  // namespace plumb::executor::cuda
