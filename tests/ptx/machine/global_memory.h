#pragma once
// The buffers in device memory that kernels may touch. A buffer is memory of the host, at the host's address.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/ptx/machine/access_log.h"

namespace plumb::test::ptx {

class GlobalMemory {
 public:
  struct Buffer {
    explicit Buffer(std::span<std::byte> of)
        : begin(reinterpret_cast<std::uint64_t>(of.data())), bytes(of.size()), log(std::ssize(of)) {}
    std::uint64_t begin = 0, bytes = 0;
    AccessLog log;
  };

  /// Adds a buffer. It may not overlap another.
  void add(std::span<std::byte> buffer) { buffers_.emplace_back(buffer); }
  /// Takes away all buffers.
  void clear() {
    buffers_.clear();
    last_ = 0;
  }
  void forget_accesses() {
    for (Buffer& buffer : buffers_) buffer.log.clear();
  }

  std::int64_t touched_bytes() const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : buffers_) bytes += buffer.log.touched_bytes();
    return bytes;
  }

  /// Returns the buffer that has all of these bytes; null if none has.
  Buffer* find(std::uint64_t address, std::uint64_t bytes) {
    if (last_ < buffers_.size() && has(buffers_[last_], address, bytes)) return &buffers_[last_];
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (has(buffers_[i], address, bytes)) {
        last_ = i;
        return &buffers_[i];
      }
    return nullptr;
  }

 private:
  static bool has(const Buffer& buffer, std::uint64_t address, std::uint64_t bytes) {
    return address >= buffer.begin && address - buffer.begin <= buffer.bytes &&
           buffer.bytes - (address - buffer.begin) >= bytes;
  }

  std::vector<Buffer> buffers_;
  std::size_t last_ = 0;
};

}  // namespace plumb::test::ptx
