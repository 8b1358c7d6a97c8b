#pragma once
// Memory of one rank: every weight, activation and message it holds is a Tensor of its pool, so the pool knows how many
// bytes are live and how many were at the peak. Memory that a Tensor gives back is kept for the next of its size: the
// steps of a run repeat their sizes, so only the first allocates.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace plumb {

class TensorPool;

/// A block of 4-byte elements, uninitialised when taken; goes back to its pool when destroyed. Empty by default.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  float* data() { return static_cast<float*>(memory_); }
  const float* data() const { return static_cast<const float*>(memory_); }
  std::int32_t* tokens() { return static_cast<std::int32_t*>(memory_); }
  const std::int32_t* tokens() const { return static_cast<const std::int32_t*>(memory_); }
  std::int64_t elements() const { return elements_; }
  std::span<float> values() { return {data(), static_cast<std::size_t>(elements_)}; }
  std::span<const float> values() const { return {data(), static_cast<std::size_t>(elements_)}; }
  bool empty() const { return elements_ == 0; }

 private:
  friend class TensorPool;
  Tensor(TensorPool* pool, void* memory, std::int64_t elements) : pool_(pool), memory_(memory), elements_(elements) {}

  TensorPool* pool_ = nullptr;
  void* memory_ = nullptr;
  std::int64_t elements_ = 0;
};

/// Outlives its tensors. Safe to use from several threads: a message's memory may be given back by its receiver.
class TensorPool {
 public:
  TensorPool() = default;
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;
  ~TensorPool();

  /// A tensor of `elements` elements, 64-byte aligned; empty for 0.
  Tensor take(std::int64_t elements);

  /// The same, filled with zeros, or with the values of another.
  Tensor take_zeros(std::int64_t elements);
  Tensor take_copy(const Tensor& other);

  std::int64_t live_bytes() const;

  /// The most that was live since the last reset_peak().
  std::int64_t peak_bytes() const;
  void reset_peak();

  /// Blocks that were ever asked of the system; constant once a run has settled.
  std::int64_t allocations() const;

 private:
  friend class Tensor;
  void give_back(void* memory, std::int64_t elements);

  mutable std::mutex mutex_;
  std::map<std::int64_t, std::vector<void*>> free_;  // [elements]
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t allocations_ = 0;
};

}  // namespace plumb
