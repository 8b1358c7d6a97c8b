#pragma once
// What a rank asks of NCCL and of its GPU's streams. A GPU answers (executor/cuda/cuda_nccl_port.h); in tests the host
// does, between threads and between processes. Nothing here blocks: what is called returns, and is asked about later.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace plumb { inline namespace executor {

/// What the members of a communicator find each other by: made by one of them, moved to the others by other means.
struct NcclId {
  std::array<char, 128> bytes{};

  friend bool operator==(const NcclId&, const NcclId&) = default;
};

enum class NcclElement : std::uint8_t { kByte, kFp32, kFp16, kBf16 };
inline constexpr int kNcclElementCount = 4;

std::int64_t bytes_of(NcclElement element);

/// Calls of one rank, on one thread. All throw RunError with NCCL's or CUDA's words where they fail.
class NcclPort {
 public:
  using Communicator = void*;
  using Stream = void*;
  using Event = void*;

  virtual ~NcclPort() = default;

  virtual NcclId make_id() = 0;

  /// Member `member` of `members`, all of which begin one with the same id; there when it is settled.
  virtual Communicator begin_communicator(const NcclId& id, int member, int members) = 0;
  /// Whether nothing is being made or launched on it any more. Throws RunError if something has gone wrong, also in
  /// what is running.
  virtual bool is_settled(Communicator communicator) = 0;
  /// Begins to flush it; destroy() when that is settled.
  virtual void finalize(Communicator communicator) = 0;
  virtual void destroy(Communicator communicator) = 0;
  /// Ends its kernels too. Does not throw.
  virtual void abort(Communicator communicator) noexcept = 0;

  virtual void group_start() = 0;
  virtual void group_end() = 0;

  // Sums are over all members, in place where `from` is `to` (of all_gather and reduce_scatter: the own block).
  struct Call {
    const void* from = nullptr;
    void* to = nullptr;
    std::int64_t elements = 0;  ///< of a send, receive, broadcast or (all_)reduce; of one block otherwise
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
  /// Behind what is on the stream now.
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool has_ended(Event event) = 0;
};

}}  // namespace plumb::executor
