#pragma once
// A warp: the registers of its 32 lanes, and the ways on which they go. Lanes go in lockstep. Where a branch
// divides them, one part waits at the branch's immediate post-dominator for the other.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptx/machine/instruction.h"
#include "tests/ptx/machine/phases.h"

namespace plumb::test::ptx {

class Block;

/// Lanes that go together, until they reach an instruction where others wait.
struct Path {
  int at = 0;
  int until = 0;
  LaneMask lanes = 0;
};

class Warp {
 public:
  Warp(Block& block, const Program& program, std::uint32_t index, LaneMask lanes);

  /// Sets a special register of 32 bits, a number for each lane, if the program reads it.
  template <class Value>
  void set_special(std::string_view name, const Value& value) {
    for (const SpecialRegister& special : program_->specials)
      if (special.name == name)
        for (int lane = 0; lane < kWarpLanes; ++lane) lanes<std::uint32_t>(special.at)[lane] = value(lane);
  }

  /// Runs until a barrier, or to the end. Throws StoppedKernel after a fault that leaves nothing to go on
  /// with.
  void run();

  bool is_done() const { return paths_.empty(); }
  bool is_waiting() const { return is_waiting_; }
  void wait() { is_waiting_ = true; }
  void go_on() { is_waiting_ = false; }
  LaneMask live() const { return live_; }  ///< lanes that have not exited
  std::uint32_t index() const { return index_; }
  /// Returns its phases, if work is counted.
  WarpPhases take_phases() { return phases_.take(); }
  Block& block() { return *block_; }

  /// Values of a register, one for each lane.
  template <class T>
  T* lanes(std::uint32_t at) {
    return reinterpret_cast<T*>(registers_.data() + at);
  }
  LaneMask& predicate(std::uint32_t at) { return *lanes<LaneMask>(at); }
  std::uint64_t address(const Address& of, int lane) {
    const std::uint64_t base =
        of.is_wide ? lanes<std::uint64_t>(of.base)[lane] : std::uint64_t{lanes<std::uint32_t>(of.base)[lane]};
    return base + static_cast<std::uint64_t>(of.offset);
  }
  std::uint32_t thread(int lane) const { return index_ * kWarpLanes + static_cast<std::uint32_t>(lane); }

  /// Reports that lanes are elsewhere, and ends the kernel.
  [[noreturn]] void stop_divergent(const Instruction& in, LaneMask here);

 private:
  void branch(const Instruction& in, LaneMask taken);
  void exit(LaneMask lanes);

  Block* block_;
  const Program* program_;
  std::uint32_t index_;
  LaneMask live_;
  bool is_waiting_ = false;
  std::vector<std::byte> registers_;
  std::vector<Path> paths_;
  PhaseLog phases_;
};

/// Calls body(lane) for each lane of the mask, in ascending order.
template <class Body>
void for_each_lane(LaneMask mask, const Body& body) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < kWarpLanes; ++lane) body(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
}

}  // namespace plumb::test::ptx
