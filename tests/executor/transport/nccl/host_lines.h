#pragma once
// Memory that all members of a made-up communicator map, threads or processes, with a box for each ordered pair of
// members. A message goes through its box in pieces; it is sent when it has been taken. The memory is
// a file without a name, which goes when the last process that has it does, however that ends.

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "executor/transport/transport.h"

namespace plumb::test {

inline constexpr int kMostHostMembers = 16;
inline constexpr std::int64_t kHostPiece = 65536;

/// Zeroes are an empty one.
struct HostBox {
  std::atomic<std::uint64_t> written, read;  ///< pieces
  std::int64_t left;                         ///< bytes of the message, before the piece
  std::uint64_t what;                        ///< the sender takes it for
  std::byte piece[kHostPiece];
};

class HostLines {
 public:
  /// Returns the path that an id carries, by which processes of this user open the memory as long as this one lives.
  static std::string make_file() {
    const int file = memfd_create("plumb-lines", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) throw RunError("no memory for a communicator");
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  }

  /// about: the others may read it, 99 letters of it. Throws RunError if nobody has made that path any more.
  HostLines(const std::string& path, int member, int members, const std::string& about = {})
      : path_(path), member_(member), members_(members) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw RunError("invalid usage: nobody has made this id");
    void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) throw RunError("no memory for a communicator");
    shared_ = static_cast<Shared*>(at);
    Member& own = shared_->members[member];
    own.process = getpid();
    about.copy(own.about, sizeof own.about - 1);
    shared_->joined.fetch_add(1);
  }
  ~HostLines() {
    int here = kHere;
    shared_->members[member_].is_gone.compare_exchange_strong(here, kLeft);
    for (const int process : processes_)
      if (process >= 0) close(process);
    munmap(shared_, sizeof(Shared));
  }
  HostLines(const HostLines&) = delete;
  HostLines& operator=(const HostLines&) = delete;

  int member() const { return member_; }
  int members() const { return members_; }
  HostBox& box(int from, int to) { return shared_->boxes[from][to]; }

  bool all_have_joined() {
    if (has_joined_) return true;
    if (shared_->joined.load() < members_) return false;
    has_joined_ = true;
    for (int other = 0; other < members_; ++other)
      processes_[other] =
          process_of(other) == getpid() ? -1 : static_cast<int>(syscall(SYS_pidfd_open, process_of(other), 0));
    const std::string own = "/proc/" + std::to_string(getpid()) + "/fd/";
    if (path_.starts_with(own) && !shared_->is_closed.exchange(true)) close(std::atoi(path_.c_str() + own.size()));
    return true;
  }

  // Once all have joined.
  int process_of(int member) const { return shared_->members[member].process; }
  std::string about(int member) const { return shared_->members[member].about; }

  /// Counts a call of this member, for the others to see.
  void note_call() { shared_->members[member_].calls.fetch_add(1); }
  std::uint64_t calls_of(int member) const { return shared_->members[member].calls.load(); }

  /// Tells the others that the bytes they wait for do not come.
  void give_up() { shared_->members[member_].is_gone.store(kGaveUp); }
  /// True if that member has given up, or its process has ended before it had left.
  bool is_lost(int member) {
    if (shared_->members[member].is_gone.load() == kGaveUp) return true;
    pollfd process{.fd = processes_[member], .events = POLLIN, .revents = 0};
    return process.fd >= 0 && poll(&process, 1, 0) == 1 && shared_->members[member].is_gone.load() == kHere;
  }

 private:
  enum Gone : int { kHere, kLeft, kGaveUp };
  struct Member {
    std::atomic<int> is_gone;
    std::atomic<std::uint64_t> calls;
    int process;
    char about[100];
  };
  struct Shared {
    std::atomic<int> joined;
    std::atomic<bool> is_closed;  // where it was made
    Member members[kMostHostMembers];
    HostBox boxes[kMostHostMembers][kMostHostMembers];
  };

  const std::string path_;
  const int member_, members_;
  bool has_joined_ = false;
  int processes_[kMostHostMembers] = {};  // of the others, to be asked whether they live
  Shared* shared_ = nullptr;
};

/// A message from one member to another, a piece at a time.
class HostTransfer {
 public:
  // what: both ends must mean the same.
  static HostTransfer out(HostLines& lines, int to, const void* at, std::int64_t bytes, std::uint64_t what) {
    return {lines.box(lines.member(), to), true, static_cast<std::byte*>(const_cast<void*>(at)), bytes, what};
  }
  static HostTransfer in(HostLines& lines, int from, void* at, std::int64_t bytes, std::uint64_t what) {
    return {lines.box(from, lines.member()), false, static_cast<std::byte*>(at), bytes, what};
  }

  /// Identifies an end of a box, whose transfers go one after the other.
  const void* end() const { return sends_ ? &box_->written : &box_->read; }
  bool is_over() const { return is_over_; }

  /// Moves the bytes that can be moved now. True if there were any. Throws where the two ends mean different calls.
  bool step() { return !is_over_ && (sends_ ? step_out() : step_in()); }

 private:
  HostTransfer(HostBox& box, bool sends, std::byte* at, std::int64_t bytes, std::uint64_t what)
      : box_(&box), sends_(sends), at_(at), left_(bytes), what_(what) {}

  bool step_out() {
    const std::uint64_t written = box_->written.load();
    if (box_->read.load() != written) return false;
    if (has_begun_ && left_ == 0) return is_over_ = true;
    has_begun_ = true;
    const std::int64_t size = std::min(left_, kHostPiece);
    box_->left = left_;
    box_->what = what_;
    if (size > 0) std::memcpy(box_->piece, at_, static_cast<std::size_t>(size));
    at_ += size;
    left_ -= size;
    box_->written.store(written + 1);
    return true;
  }
  bool step_in() {
    const std::uint64_t read = box_->read.load();
    if (box_->written.load() == read) return false;
    if (box_->what != what_)
      throw RunError("ranks of a communicator call different collectives, or of different sizes");
    if (box_->left != left_) throw RunError("a SEND and its RECV are of different sizes");
    const std::int64_t size = std::min(left_, kHostPiece);
    if (size > 0) std::memcpy(at_, box_->piece, static_cast<std::size_t>(size));
    at_ += size;
    left_ -= size;
    is_over_ = left_ == 0;
    box_->read.store(read + 1);
    return true;
  }

  HostBox* box_;
  bool sends_, has_begun_ = false, is_over_ = false;
  std::byte* at_;
  std::int64_t left_;
  std::uint64_t what_;
};

}  // namespace plumb::test
