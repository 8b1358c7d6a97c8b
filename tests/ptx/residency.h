#pragma once
// How many blocks of a kernel a multiprocessor has at once, and how long the last of them keep a GPU waiting.

#include <cstdint>
#include <span>
#include <string>

#include "tests/ptx/machine/block.h"

namespace plumb::test::ptx {

/// Resources that the blocks of a multiprocessor share (CUDA C++ Programming Guide, "Compute Capabilities", 8.0 to 10.0).
struct Multiprocessor {
  int registers = 65536;
  int warps = 64;
  int blocks = 32;
  std::int64_t shared_bytes = 228 << 10;  ///< 164 KiB on compute capability 8.0
};

struct Residency {
  int blocks = 0;     ///< at once on a multiprocessor
  std::string limit;  ///< what has no room for another: "registers", "shared memory", "warps" or "blocks"
};

/// `registers`: of a thread. Warps get registers in units of 256, and a block has 1 KiB of shared memory that the system
/// uses (CUDA Occupancy Calculator).
Residency residency_of(const LaunchSize& size, int registers, const Multiprocessor& multiprocessor);

/// Returns the time of a grid over the time that it would take if all places were busy to its end. Blocks start in
/// order, each in the place that is free first, and take as long as they have work. `work`: of each block. `copies`:
/// blocks of each, one behind the other.
double tail_ratio(std::span<const std::int64_t> work, int places, int copies);

}  // namespace plumb::test::ptx
