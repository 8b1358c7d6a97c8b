#include "tests/ptx/machine/phases.h"

#include <algorithm>
#include <utility>

#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

/// Returns the clocks until the slowest of the lanes' sectors is there, and notes that the block has used them.
int clocks_of_access(Warp& warp, const Address& address, std::int64_t bytes, LaneMask lanes) {
  int most = 0;
  for_each_lane(lanes, [&](int lane) {
    const std::uint64_t first = warp.address(address, lane);
    most = std::max(most, clocks_of(warp.block().use_memory(first, bytes)));
  });
  return most;
}

}  // namespace

PhaseLog::PhaseLog(std::size_t register_bytes) : ready_(register_bytes / kPlaceBytes + 1) {}

std::int64_t PhaseLog::operands_ready(const Instruction& in) {
  std::int64_t at = 0;
  if (in.guard != Instruction::kNoGuard) at = std::max(at, ready(in.guard));
  for (std::size_t i = in.results; i < in.values; ++i) at = std::max(at, ready(in.at[i]));
  for (std::size_t i = 0; i < in.addresses; ++i) at = std::max(at, ready(in.address[i].base));
  return at;
}

void PhaseLog::add(Warp& warp, const Instruction& in, LaneMask lanes) {
  std::int64_t begin = std::max(earliest_, operands_ready(in));
  if (in.pace.is_wait) begin = std::max(begin, copies_ready_);
  std::int64_t clocks = clocks_of(in.pace.origin);
  if (in.pace.origin == Origin::kMemory) clocks = clocks_of_access(warp, in.address[0], in.access_bytes, lanes);
  if (in.pace.is_copy)
    copies_ready_ = std::max(copies_ready_, begin + clocks_of_access(warp, in.address[1], in.immediate[0], lanes));
  for (std::size_t i = 0; i < in.results; ++i) ready(in.at[i]) = begin + clocks;
  slots_ += in.pace.slots;
  latest_ = std::max(latest_, begin);
  if (in.pace.is_store || in.pace.is_wait) earliest_ = begin;
  if (in.pace.is_barrier || in.flow != Flow::kNext) end_phase(in.pace.is_barrier);
}

void PhaseLog::end_phase(bool at_barrier) {
  phases_.push_back({slots_, static_cast<std::int32_t>(latest_ - phase_begin_), at_barrier});
  slots_ = 0;
  phase_begin_ = earliest_ = latest_;
}

WarpPhases PhaseLog::take() {
  if (slots_ > 0) end_phase(false);
  return std::exchange(phases_, {});
}

}  // namespace plumb::test::ptx
