#pragma once
// A GPU's compute stream with matrix products, and the times of the work that runs beside them (nccl_devices.h).

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "executor/machines/cuda/matrix_products.h"
#include "kernels/half_format.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor { namespace cuda {

/// The device must be current in all calls, and on destruction.
class ProductLane {
 public:
  /// Prepares products x W^T of [edge, edge] matrices of numbers between -1 and 1. Throws RunError if there is no
  /// memory for them.
  ProductLane(std::optional<HalfFormat> half, std::int64_t edge);
  ~ProductLane();
  ProductLane(const ProductLane&) = delete;
  ProductLane& operator=(const ProductLane&) = delete;

  bool is_of(std::optional<HalfFormat> half, std::int64_t edge) const { return half == half_ && edge == edge_; }

  void multiply(int products);

  // These calls surround what is enqueued on `other`, in this order:
  void let_follow(cudaStream_t other);  ///< makes `other` wait for the products so far
  void begin(cudaStream_t other);       ///< makes the next products wait for `other`; times count from here
  void end(cudaStream_t other);         ///< marks the ends of both; then `other` waits for the products

  /// Return the time from the beginning to the end of the products, and of the work on `other`, once both are over.
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
