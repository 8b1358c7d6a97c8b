#include "executor/transport/tensor_pool.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace plumb { inline namespace executor {
namespace {

constexpr std::align_val_t kTensorAlignment{64};

}  // namespace

Tensor::Tensor(Tensor&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      block_bytes_(std::exchange(other.block_bytes_, 0)) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  Tensor taken(std::move(other));
  std::swap(pool_, taken.pool_);
  std::swap(memory_, taken.memory_);
  std::swap(bytes_, taken.bytes_);
  std::swap(block_bytes_, taken.block_bytes_);
  return *this;
}

Tensor::~Tensor() {
  if (memory_ != nullptr) pool_->give_back(*this);
}

TensorPool::~TensorPool() {
  for (const auto& [bytes, blocks] : free_)
    for (void* block : blocks) ::operator delete(block, kTensorAlignment);
}

Tensor TensorPool::take_bytes(std::int64_t bytes) {
  return take_bytes_within(bytes, bytes);
}

Tensor TensorPool::take_bytes_within(std::int64_t bytes, std::int64_t most) {
  assert(bytes <= most);
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  std::vector<void*>& blocks = free_[most];
  void* memory = nullptr;
  if (blocks.empty()) {
    memory = ::operator new(static_cast<std::size_t>(most), kTensorAlignment);
    ++allocations_;
  } else {
    memory = blocks.back();
    blocks.pop_back();
  }
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return {this, memory, bytes, most};
}

Tensor TensorPool::take_zeros(std::int64_t elements) {
  Tensor tensor = take(elements);
  std::ranges::fill(tensor.values(), 0.0F);
  return tensor;
}

Tensor TensorPool::take_copy(const Tensor& other) {
  Tensor tensor = take_bytes_within(static_cast<std::int64_t>(other.bytes().size()), other.block_bytes());
  std::ranges::copy(other.bytes(), tensor.bytes().begin());
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

void TensorPool::give_back(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  free_[tensor.block_bytes_].push_back(tensor.memory_);
  live_bytes_ -= tensor.bytes_;
}

}}  // namespace plumb::executor
