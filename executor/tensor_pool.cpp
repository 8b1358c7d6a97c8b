#include "executor/tensor_pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace plumb {
namespace {

constexpr std::int64_t kElementBytes = 4;
constexpr std::align_val_t kAlignment{64};

}  // namespace

Tensor::Tensor(Tensor&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      elements_(std::exchange(other.elements_, 0)) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  Tensor taken(std::move(other));
  std::swap(pool_, taken.pool_);
  std::swap(memory_, taken.memory_);
  std::swap(elements_, taken.elements_);
  return *this;
}

Tensor::~Tensor() {
  if (memory_ != nullptr) pool_->give_back(memory_, elements_);
}

TensorPool::~TensorPool() {
  for (const auto& [elements, blocks] : free_)
    for (void* block : blocks) ::operator delete(block, kAlignment);
}

Tensor TensorPool::take(std::int64_t elements) {
  if (elements == 0) return {};
  const std::lock_guard lock(mutex_);
  std::vector<void*>& blocks = free_[elements];
  void* memory = nullptr;
  if (blocks.empty()) {
    memory = ::operator new(static_cast<std::size_t>(elements * kElementBytes), kAlignment);
    ++allocations_;
  } else {
    memory = blocks.back();
    blocks.pop_back();
  }
  live_bytes_ += elements * kElementBytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return {this, memory, elements};
}

Tensor TensorPool::take_zeros(std::int64_t elements) {
  Tensor tensor = take(elements);
  std::ranges::fill(tensor.values(), 0.0F);
  return tensor;
}

Tensor TensorPool::take_copy(const Tensor& other) {
  Tensor tensor = take(other.elements());
  std::ranges::copy(other.values(), tensor.data());
  return tensor;
}

std::int64_t TensorPool::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

std::int64_t TensorPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void TensorPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

std::int64_t TensorPool::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

void TensorPool::give_back(void* memory, std::int64_t elements) {
  const std::lock_guard lock(mutex_);
  free_[elements].push_back(memory);
  live_bytes_ -= elements * kElementBytes;
}

}  // namespace plumb
