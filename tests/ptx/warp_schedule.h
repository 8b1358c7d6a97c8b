#pragma once
// The time that the blocks of a kernel take on a multiprocessor whose schedulers issue an instruction in a clock: the
// warps of a scheduler take turns, and fill each other's waits as far as they can.

#include <cstdint>
#include <span>

#include "tests/ptx/machine/phases.h"

namespace plumb::test::ptx {

/// The blocks that one of the multiprocessors of a GPU gets.
struct BlockShare {
  int multiprocessors = 1;
  int copies = 1;    ///< blocks of each, one behind the other
  int resident = 1;  ///< blocks at once on a multiprocessor
};

/// Returns the clocks of a multiprocessor for every so manieth of the blocks, one for each multiprocessor of the GPU. A scheduler, of four,
/// serves its warps in the order in which they are ready, a phase at a time; a phase lasts as long as its instructions
/// or its waits, whichever is longer. A block begins where one has ended. Units other than the schedulers are not waited for
/// (work_bound.h has their times).
std::int64_t schedule_clocks(std::span<const BlockPhases> blocks, const BlockShare& share);

}  // namespace plumb::test::ptx
