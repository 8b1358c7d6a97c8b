#pragma once
// The course of a warp as its scheduler sees it: phases of instructions, and what each has to wait for.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

class Warp;

/// A stretch of a warp's instructions, up to a branch or a barrier.
struct Phase {
  std::int32_t slots = 0;   ///< instructions that the scheduler issues
  std::int32_t clocks = 0;  ///< until the last of them has its operands, if the warp never waits for the scheduler
  bool ends_at_barrier = false;
};
using WarpPhases = std::vector<Phase>;
using BlockPhases = std::vector<WarpPhases>;  // [warp]

/// Follows a warp's instructions. Within a phase an instruction begins when its operands are there, whatever stands
/// before it, since ptxas moves loads ahead; but nothing passes a store, and no phase begins before the instructions of
/// the one before have begun.
class PhaseLog {
 public:
  explicit PhaseLog(std::size_t register_bytes);

  /// Adds an instruction that a warp is about to do for some of its lanes.
  void add(Warp& warp, const Instruction& in, LaneMask lanes);
  /// Returns the phases, and begins anew.
  WarpPhases take();

 private:
  std::int64_t& ready(std::uint32_t place) { return ready_[place / kPlaceBytes]; }
  std::int64_t operands_ready(const Instruction& in);
  void end_phase(bool at_barrier);

  static constexpr std::uint32_t kPlaceBytes = 4;  // every register begins at a multiple

  std::vector<std::int64_t> ready_;  // clock at which the register that begins here has its value
  std::int64_t copies_ready_ = 0;
  std::int64_t phase_begin_ = 0, earliest_ = 0, latest_ = 0;  // for what comes next; of what has begun
  std::int32_t slots_ = 0;
  WarpPhases phases_;
};

}  // namespace plumb::test::ptx
