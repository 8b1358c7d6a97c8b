#pragma once
// The memory of one rank. Every weight, activation and message that the rank holds is a Tensor of its pool, so the pool
// knows how many bytes are live and how many were at the peak. Memory that a Tensor gives back is kept for the next of
// its size. The steps of a run repeat their sizes, so only the first step allocates.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace plumb { inline namespace executor {

class TensorPool;

/// A block of memory, uninitialised when taken, that goes back to its pool when destroyed. A default Tensor is empty.
/// Most tensors are used as elements of 4 bytes; elements() returns how many whole ones there are.
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
  std::uint32_t* words() { return static_cast<std::uint32_t*>(memory_); }
  const std::uint32_t* words() const { return static_cast<const std::uint32_t*>(memory_); }
  std::int64_t elements() const { return bytes_ / 4; }
  std::span<float> values() { return {data(), static_cast<std::size_t>(elements())}; }
  std::span<const float> values() const { return {data(), static_cast<std::size_t>(elements())}; }
  std::uint16_t* halves() { return static_cast<std::uint16_t*>(memory_); }
  const std::uint16_t* halves() const { return static_cast<const std::uint16_t*>(memory_); }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(memory_), static_cast<std::size_t>(bytes_)}; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(memory_), static_cast<std::size_t>(bytes_)};
  }
  bool empty() const { return bytes_ == 0; }

  /// Returns the bytes of the block that the tensor lies in: its own size, or the most that the tensor was said to
  /// need.
  std::int64_t block_bytes() const { return block_bytes_; }

 private:
  friend class TensorPool;
  Tensor(TensorPool* pool, void* memory, std::int64_t bytes, std::int64_t block_bytes)
      : pool_(pool), memory_(memory), bytes_(bytes), block_bytes_(block_bytes) {}

  TensorPool* pool_ = nullptr;
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t block_bytes_ = 0;
};

/// Hands out tensors and must outlive them. Safe to use from several threads: a message's memory may be given back by
/// its receiver.
class TensorPool {
 public:
  TensorPool() = default;
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;
  ~TensorPool();

  /// Return a tensor of so many bytes, or of so many 4-byte elements, aligned to 64 bytes; empty for 0.
  Tensor take_bytes(std::int64_t bytes);
  Tensor take(std::int64_t elements) { return take_bytes(4 * elements); }

  /// Return a tensor in a block of `most` bytes or elements, for tensors whose size differs from use to use: the next
  /// one with the same `most` finds the block again. Only the tensor's own bytes count as live. Asserts that it is no
  /// larger than `most`.
  Tensor take_bytes_within(std::int64_t bytes, std::int64_t most);
  Tensor take_within(std::int64_t elements, std::int64_t most) { return take_bytes_within(4 * elements, 4 * most); }

  /// Return a tensor filled with zeros, or with the values of another tensor, in a block as large as that tensor's.
  Tensor take_zeros(std::int64_t elements);
  Tensor take_copy(const Tensor& other);

  std::int64_t live_bytes() const;

  /// Returns the most bytes that were live since the last reset_peak().
  std::int64_t peak_bytes() const;
  void reset_peak();

  /// Returns how many blocks were ever allocated; the number is constant once a run has settled.
  std::int64_t allocations() const;

 private:
  friend class Tensor;
  void give_back(const Tensor& tensor);

  mutable std::mutex mutex_;
  std::map<std::int64_t, std::vector<void*>> free_;  // [bytes of the block]
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t allocations_ = 0;
};

}}  // namespace plumb::executor
