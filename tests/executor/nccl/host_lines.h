#pragma once
// What the members of a made-up communicator have in common: a file that all of them map, threads or processes, with a
// box for each ordered pair. A message goes through its box in pieces; it is sent when it has been taken.

#include <fcntl.h>
#include <sys/mman.h>
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
inline constexpr std::int64_t kHostPiece = 4096;

/// Zeroes are an empty one.
struct HostBox {
  std::atomic<std::uint64_t> written, read;  ///< pieces
  std::int64_t left;                         ///< bytes of the message, before the piece
  std::byte piece[kHostPiece];
};

class HostLines {
 public:
  /// A file of its own: its path is what an id carries.
  static std::string make_file() {
    std::string path = "/tmp/plumb-lines-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) throw RunError("no file for a communicator: " + path);
    close(file);
    return path;
  }

  /// The last member that comes removes the file.
  HostLines(const std::string& path, int member, int members) : member_(member), members_(members) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw RunError("invalid usage: nobody has made this id");
    void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) throw RunError("no memory for a communicator");
    shared_ = static_cast<Shared*>(at);
    if (shared_->joined.fetch_add(1) + 1 == members) unlink(path.c_str());
  }
  ~HostLines() { munmap(shared_, sizeof(Shared)); }
  HostLines(const HostLines&) = delete;
  HostLines& operator=(const HostLines&) = delete;

  int member() const { return member_; }
  int members() const { return members_; }
  bool all_have_joined() const { return shared_->joined.load() >= members_; }
  HostBox& box(int from, int to) { return shared_->boxes[from][to]; }

 private:
  struct Shared {
    std::atomic<int> joined;
    HostBox boxes[kMostHostMembers][kMostHostMembers];
  };

  int member_, members_;
  Shared* shared_ = nullptr;
};

/// One way between a member and another, a piece at a time.
class HostTransfer {
 public:
  static HostTransfer out(HostLines& lines, int to, const void* at, std::int64_t bytes) {
    return {lines.box(lines.member(), to), true, static_cast<std::byte*>(const_cast<void*>(at)), bytes};
  }
  static HostTransfer in(HostLines& lines, int from, void* at, std::int64_t bytes) {
    return {lines.box(from, lines.member()), false, static_cast<std::byte*>(at), bytes};
  }

  /// Those of one box go one after the other.
  const HostBox* box() const { return box_; }
  bool is_over() const { return is_over_; }

  /// Moves what can be moved now; whether it is over. Throws where both ends mean different sizes.
  bool step() {
    if (!is_over_) is_over_ = sends_ ? step_out() : step_in();
    return is_over_;
  }

 private:
  HostTransfer(HostBox& box, bool sends, std::byte* at, std::int64_t bytes)
      : box_(&box), sends_(sends), at_(at), left_(bytes) {}

  bool step_out() {
    const std::uint64_t written = box_->written.load();
    if (box_->read.load() != written) return false;
    if (has_begun_ && left_ == 0) return true;
    has_begun_ = true;
    const std::int64_t size = std::min(left_, kHostPiece);
    box_->left = left_;
    std::memcpy(box_->piece, at_, static_cast<std::size_t>(size));
    at_ += size;
    left_ -= size;
    box_->written.store(written + 1);
    return false;
  }
  bool step_in() {
    const std::uint64_t read = box_->read.load();
    if (box_->written.load() == read) return false;
    if (box_->left != left_) throw RunError("both ends of a message mean different sizes");
    const std::int64_t size = std::min(left_, kHostPiece);
    std::memcpy(at_, box_->piece, static_cast<std::size_t>(size));
    at_ += size;
    left_ -= size;
    box_->read.store(read + 1);
    return left_ == 0;
  }

  HostBox* box_;
  bool sends_, has_begun_ = false, is_over_ = false;
  std::byte* at_;
  std::int64_t left_;
};

}  // namespace plumb::test
