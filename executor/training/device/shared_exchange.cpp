#include "executor/training/device/shared_exchange.h"

#include <cassert>

#include "executor/spec/division/equal_blocks.h"

namespace plumb { inline namespace executor {
namespace {

class Share {
 public:
  Share(DeviceKernels& kernels, const std::vector<const DeviceExchange*>& members, std::size_t member,
        std::int64_t element_bytes)
      : kernels_(kernels),
        members_(members),
        member_(member),
        own_(*members[member]),
        bytes_(own_.is_stored ? element_bytes : std::int64_t{sizeof(float)}) {}

  void enqueue() {
    if (own_.pairs != DevicePairs::kNone) return send();
    const std::int64_t first = bound(member_), count = bound(member_ + 1) - first;
    const auto root = static_cast<std::size_t>(own_.peer < 0 ? 0 : own_.peer);
    switch (own_.kind) {
      case CollectiveKind::kAllReduce:
        sum(first, count);
        for (std::size_t to = 1; to < members_.size(); ++to) copy(to, 0, first, count);
        return;
      case CollectiveKind::kReduceScatter:
        sum(first, count);
        return copy(member_, 0, first, count);
      case CollectiveKind::kReduce:
        sum(first, count);
        return copy(root, 0, first, count);
      case CollectiveKind::kAllGather:
        for (std::size_t to = 0; to < members_.size(); ++to) copy(to, member_, first, count);
        return;
      case CollectiveKind::kBroadcast:
        return copy(member_, root, 0, own_.elements);
      default:
        assert(false && "a message is a copy of its sender's where ranks share a device, and so are shifts");
    }
  }

 private:
  /// Copies the values that other members receive from this one.
  void send() {
    const auto all = static_cast<std::int64_t>(members_.size());
    if (own_.pairs == DevicePairs::kShift)
      return kernels_.copy(members_[(member_ + 1) % members_.size()]->values, own_.outgoing, own_.elements * bytes_);
    const std::int64_t block = own_.elements / all * bytes_;
    for (std::size_t to = 0; to < members_.size(); ++to)
      if (to != member_)
        kernels_.copy(members_[to]->values + static_cast<std::int64_t>(member_) * block,
                      own_.outgoing + static_cast<std::int64_t>(to) * block, block);
  }

  /// First element of a member's block of the buffer.
  std::int64_t bound(std::size_t member) const {
    if (!own_.bounds.empty()) return own_.bounds[member];
    return block_begin(own_.elements, static_cast<int>(members_.size()), static_cast<int>(member));
  }

  std::byte* at(std::size_t member, std::int64_t element) const { return members_[member]->values + element * bytes_; }

  /// Makes member 0's values the sum. No other member touches these elements meanwhile.
  void sum(std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    for (std::size_t from = 1; from < members_.size(); ++from) {
      if (own_.is_stored)
        kernels_.residual_add(at(0, first), at(0, first), at(from, first), nullptr, 1, count);
      else
        kernels_.add_gradients(floats(0, first), floats(0, first), floats(from, first), count);
    }
  }
  float* floats(std::size_t member, std::int64_t element) const {
    return reinterpret_cast<float*>(at(member, element));
  }

  void copy(std::size_t to, std::size_t from, std::int64_t first, std::int64_t count) {
    if (to != from && count > 0) kernels_.copy(at(to, first), at(from, first), count * bytes_);
  }

  DeviceKernels& kernels_;
  const std::vector<const DeviceExchange*>& members_;
  const std::size_t member_;
  const DeviceExchange& own_;
  const std::int64_t bytes_;
};

}  // namespace

void enqueue_share(DeviceKernels& kernels, const std::vector<const DeviceExchange*>& members, std::size_t member,
                   std::int64_t element_bytes) {
  Share(kernels, members, member, element_bytes).enqueue();
}

}}  // namespace plumb::executor
