#pragma once
// A rank's interface to NCCL and to its GPU's streams. A GPU implements it (executor/machines/cuda/cuda_nccl_port.h), and in
// tests the host does, between threads and between processes. No function blocks, unless the
// communicator does: a call returns at once, and its state is asked for later.

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>

namespace plumb { inline namespace executor {

/// The id by which the members of a communicator find each other. One of them makes it, and it reaches the others by
/// other means.
struct NcclId {
  std::array<char, 128> bytes{};

  friend bool operator==(const NcclId&, const NcclId&) = default;
};

enum class NcclElement : std::uint8_t { kByte, kFp32, kFp16, kBf16 };
inline constexpr int kNcclElementCount = 4;

std::int64_t bytes_of(NcclElement element);

/// The way in which a communicator is made.
struct NcclConfig {
  /// Most blocks, and so SMs, of one of its kernels, which hold them while they wait for other ranks; 0: NCCL decides.
  int most_blocks = 0;
  bool blocks = false;  ///< a call returns when its kernel is launched, and begin_communicator() when all have come
};

/// The calls of one rank, on one thread. All throw RunError with NCCL's or CUDA's words if they fail.
class NcclPort {
 public:
  using Communicator = void*;
  using Stream = void*;
  using Event = void*;

  virtual ~NcclPort() = default;

  virtual NcclId make_id() = 0;

  /// Begins a communicator as member `member` of `members`, all of which do so with the same id. It exists when it is
  /// settled.
  virtual Communicator begin_communicator(const NcclId& id, int member, int members, const NcclConfig& config) = 0;
  /// Returns true if nothing is being made or launched on it any more. Throws RunError if something has failed,
  /// including calls that run.
  virtual bool is_settled(Communicator communicator) = 0;
  /// Begins to flush it; destroy() may be called when that is settled.
  virtual void finalize(Communicator communicator) = 0;
  virtual void destroy(Communicator communicator) = 0;
  /// Aborts them and their kernels, all at once: an abort waits for the device, and so for the kernels of others, which
  /// wait for peers that may be gone (github.com/NVIDIA/nccl/issues/1013). Does not throw.
  virtual void abort(std::span<const Communicator> communicators) noexcept = 0;

  virtual void group_start() = 0;
  virtual void group_end() = 0;
  /// Makes calls as a group, which ends even if one of them throws.
  template <class Calls>
  void in_group(const Calls& calls) {
    group_start();
    try {
      calls();
    } catch (...) {
      try {
        group_end();
      } catch (const std::exception&) {  // the first fault counts
      }
      throw;
    }
    group_end();
  }

  /// Returns the bytes that can be allocated on this rank's device now.
  virtual std::int64_t free_bytes() = 0;

  // A call. Sums are over all members, in place if `from` is `to` (in all_gather and reduce_scatter: the own block).
  struct Call {
    const void* from = nullptr;
    void* to = nullptr;
    std::int64_t elements = 0;  ///< elements of a send, receive, broadcast or (all_)reduce; otherwise of one block
    NcclElement element = NcclElement::kFp32;
    int peer = 0;  ///< the other end, or the root
    Communicator communicator = nullptr;
    Stream stream = nullptr;
  };
  virtual void send(const Call& call) = 0;
  virtual void receive(const Call& call) = 0;
  virtual void broadcast(const Call& call) = 0;
  virtual void reduce(const Call& call) = 0;
  virtual void all_gather(const Call& call) = 0;
  virtual void reduce_scatter(const Call& call) = 0;
  virtual void all_reduce(const Call& call) = 0;

  virtual Stream make_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  /// Records the event behind what is on the stream now.
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool has_ended(Event event) = 0;
};

}}  // namespace plumb::executor
