#pragma once
// The threads that have read and written each byte of a region of memory. It finds races, and reads of what
// nobody has written.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/ptx/machine/clocks.h"

namespace plumb::test::ptx {

/// A fault of an access, and the other thread that makes it so.
struct Conflict {
  enum class Kind : std::uint8_t { kUnwritten, kPendingCopy, kAfterWrite, kAfterRead };
  Kind kind = Kind::kUnwritten;
  std::uint32_t other = 0;
};

/// Keeps the last write and two reads of each word, or of each byte in pages where smaller accesses happen.
/// Two readers are enough to find a thread other than the writer, as long as every barrier is one of the
/// whole block.
class AccessLog {
 public:
  explicit AccessLog(std::int64_t bytes) : pages_(static_cast<std::size_t>((bytes + kPageBytes - 1) / kPageBytes)) {}

  /// Forgets all accesses.
  void clear() { ++generation_; }

  /// Note an access to `bytes` bytes from `first` on. A read of what is unwritten is a conflict if
  /// `needs_write`.
  std::optional<Conflict> read(std::int64_t first, int bytes, std::uint32_t thread, const Clocks& clocks,
                               bool needs_write);
  std::optional<Conflict> write(std::int64_t first, int bytes, std::uint32_t thread, const Clocks& clocks);

  /// Returns the bytes that have been read before they were written, and those that have been written.
  std::int64_t touched_bytes() const;

  /// Marks bytes as the target of a copy that nobody has waited for, after a write(), and takes the mark
  /// away, when the copy counts as a write of this moment.
  void begin_copy(std::int64_t first, int bytes);
  void end_copy(std::int64_t first, int bytes, Moment now);

 private:
  static constexpr std::int64_t kPageBytes = 1024;
  static constexpr std::int64_t kWordBytes = 4;

  struct Cell {
    Moment write;
    std::array<Moment, 2> reads;
    bool is_pending = false;
    bool is_read_first = false;
  };
  struct Page {
    std::uint64_t generation = 0;
    std::int64_t cell_bytes = kWordBytes;
    std::vector<Cell> cells;
  };

  static std::optional<Conflict> read_cell(Cell& cell, std::uint32_t thread, const Clocks& clocks, bool needs_write);
  static std::optional<Conflict> write_cell(Cell& cell, std::uint32_t thread, const Clocks& clocks);
  Page& page_of(std::int64_t at, bool needs_bytes);
  template <class Visit>
  void for_each_cell(std::int64_t first, int bytes, const Visit& visit);

  std::uint64_t generation_ = 1;
  std::vector<Page> pages_;
};

}  // namespace plumb::test::ptx
