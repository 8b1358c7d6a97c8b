#pragma once
// The buffers in device memory that kernels may touch. A buffer is memory of the host, at the host's address.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/ptx/machine/access_log.h"
#include "tests/ptx/machine/pace.h"

namespace plumb::test::ptx {

class GlobalMemory {
 public:
  struct Buffer {
    explicit Buffer(std::span<std::byte> of)
        : begin(reinterpret_cast<std::uint64_t>(of.data())), bytes(of.size()), log(std::ssize(of)) {}
    std::uint64_t begin = 0, bytes = 0;
    AccessLog log;
    std::vector<std::uint32_t> users;  ///< the last block that has used each sector, counted from 1; 0: none has
  };

  /// Adds a buffer. It may not overlap another.
  void add(std::span<std::byte> buffer) { buffers_.emplace_back(buffer); }
  /// Takes away all buffers.
  void clear() {
    buffers_.clear();
    last_ = 0;
  }
  void forget_accesses() {
    for (Buffer& buffer : buffers_) {
      buffer.log.clear();
      buffer.users.clear();
    }
  }

  std::int64_t touched_bytes() const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : buffers_) bytes += buffer.log.touched_bytes();
    return bytes;
  }

  /// Returns where the slowest of the bytes' sectors is found, which a block uses now. Bytes that no buffer has cost nothing.
  Found use(std::uint64_t address, std::int64_t bytes, std::uint32_t block) {
    Buffer* const buffer = find(address, static_cast<std::uint64_t>(bytes));
    if (buffer == nullptr) return Found::kL1;
    const std::uint64_t first_sector = buffer->begin / kSectorBytes;
    buffer->users.resize((buffer->begin + buffer->bytes) / kSectorBytes - first_sector + 1);
    Found slowest = Found::kL1;
    for (std::uint64_t at = address / kSectorBytes;
         at <= (address + static_cast<std::uint64_t>(bytes) - 1) / kSectorBytes; ++at) {
      std::uint32_t& user = buffer->users[at - first_sector];
      if (user != block + 1) slowest = std::max(slowest, user == 0 ? Found::kDevice : Found::kL2);
      user = block + 1;
    }
    return slowest;
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
  static constexpr std::uint64_t kSectorBytes = 32;

  static bool has(const Buffer& buffer, std::uint64_t address, std::uint64_t bytes) {
    return address >= buffer.begin && address - buffer.begin <= buffer.bytes &&
           buffer.bytes - (address - buffer.begin) >= bytes;
  }

  std::vector<Buffer> buffers_;
  std::size_t last_ = 0;
};

}  // namespace plumb::test::ptx
