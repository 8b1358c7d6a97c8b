#pragma once
// A block of threads while it runs: its warps, barriers and memories.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "tests/ptx/machine/clocks.h"
#include "tests/ptx/machine/global_memory.h"
#include "tests/ptx/machine/report.h"
#include "tests/ptx/machine/warp.h"
#include "tests/ptx/machine/work.h"

namespace plumb::test::ptx {

/// Ends a kernel after a fault that has been reported.
struct StoppedKernel : std::exception {};

/// Sizes of a launch. Grids and blocks have one dimension.
struct LaunchSize {
  std::uint32_t blocks = 1;
  std::uint32_t threads = kWarpLanes;  ///< of a block
  std::int64_t shared_bytes = 0;       ///< beside the entry's own variables
};

/// The memories that a kernel gets from its caller, and the report that it adds to.
struct LaunchMemory {
  std::span<const std::byte> parameters;
  GlobalMemory* global = nullptr;
  AccessLog* shared_log = nullptr;  ///< of the largest shared memory
  Report* report = nullptr;
  Work* work = nullptr;  ///< null: it is not counted
};

/// The first generic addresses of shared and of local memory.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{1} << 61;

enum class AccessKind : std::uint8_t { kRead, kWrite };

class Block {
 public:
  Block(const Program& program, const LaunchSize& size, const LaunchMemory& memory, std::uint32_t index);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Runs all threads to their end. Throws StoppedKernel.
  void run();

  /// Returns the bytes that a thread reads or writes, after it has looked for faults; null if there are no
  /// such bytes.
  std::byte* reach(Space space, std::uint64_t address, int bytes, AccessKind kind, const Instruction& in,
                   std::uint32_t thread);

  /// The warp is at a barrier, and waits there if `waits`. threads 0: all threads of the block that have not
  /// exited.
  void arrive(Warp& warp, const Instruction& in, std::uint32_t barrier, std::uint32_t threads, bool waits);

  /// cp.async: a thread's copy of 16 bytes or less into shared memory, which lands when the thread waits for
  /// it.
  void start_copy(std::uint32_t thread, std::uint64_t to, std::span<const std::byte> from, const Instruction& in);
  void commit_copies(std::uint32_t thread) { ++copies_[thread].group; }
  /// Lets all copies land but those of the latest `pending` groups.
  void wait_for_copies(std::uint32_t thread, std::uint32_t pending);
  void wait_for_all_copies(std::uint32_t thread);

  /// Returns the phases of its warps, if work is counted.
  BlockPhases take_phases();
  /// Returns where the slowest of some bytes of device memory is found, which the block uses now.
  Found use_memory(std::uint64_t address, std::int64_t bytes) { return memory_.global->use(address, bytes, index_); }

  std::uint32_t index() const { return index_; }
  Report& report() { return *memory_.report; }
  Work* work() { return memory_.work; }
  Clocks& clocks() { return clocks_; }

 private:
  struct Barrier {
    std::uint32_t arrived = 0;         // threads
    std::vector<std::size_t> waiting;  // warps
    std::uint32_t needed = 0;          // threads; 0: all
    const Instruction* in = nullptr;
    Clocks::Seen seen;
  };
  struct Copy {
    std::uint32_t group = 0;
    std::int64_t to = 0;
    std::array<std::byte, 16> bytes{};
    int count = 0;
  };
  struct Copies {
    std::uint32_t group = 0;  // that copies join now
    std::vector<Copy> pending;
  };

  void release_if_complete(Barrier& barrier);
  [[noreturn]] void stop_stuck();
  void land_copies(std::uint32_t thread, std::uint32_t groups);
  void look_at(AccessLog& log, std::int64_t first, int bytes, AccessKind kind, bool needs_write, const Instruction& in,
               std::uint32_t thread);
  std::byte* fail(FaultKind kind, const Instruction& in, std::uint32_t thread, const std::string& what);

  std::uint32_t index_, threads_;
  LaunchMemory memory_;
  std::int64_t local_bytes_;  // of a thread
  Clocks clocks_;
  std::vector<std::byte> shared_, local_;
  std::vector<Warp> warps_;
  std::array<Barrier, 16> barriers_;
  std::vector<Copies> copies_;  // [thread]
};

}  // namespace plumb::test::ptx
