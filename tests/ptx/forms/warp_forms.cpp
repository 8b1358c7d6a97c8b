// Branches, barriers and the exchange of registers between the lanes of a warp.

#include <array>
#include <cstdint>
#include <string>

#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

/// bar.sync a {, b}: barrier a, for b threads or for all.
template <bool kWaits>
void reach_barrier(Warp& warp, const Instruction& in, LaneMask) {
  warp.block().arrive(warp, in, in.immediate[0], in.immediate[1], kWaits);
}

/// The lanes that the mask names must be here together, and no others.
void require_lanes(Warp& warp, const Instruction& in, LaneMask named, LaneMask here) {
  if ((named & warp.live()) != here) warp.stop_divergent(in, here);
}

void meet_warp(Warp& warp, const Instruction& in, LaneMask lanes) {
  const LaneMask named = warp.lanes<LaneMask>(in.at[0])[std::countr_zero(lanes)];
  require_lanes(warp, in, named, lanes);
  if (lanes == warp.live()) warp.block().clocks().advance(warp.index());
}

enum class Source : std::uint8_t { kUp, kDown, kXor, kIndex };

/// The lane that a lane reads from. `clamp`: the third operand of shfl; bits 8 to 12 are the mask of a
/// segment.
template <Source kSource>
int source_lane(int lane, int by, std::uint32_t clamp, bool& is_in_range) {
  const int segment = static_cast<int>(clamp >> 8 & 31), last = static_cast<int>(clamp & 31);
  const int first = lane & segment, limit = first | (last & ~segment);
  int from = kSource == Source::kUp     ? lane - by
             : kSource == Source::kDown ? lane + by
             : kSource == Source::kXor  ? lane ^ by
                                        : first | (by & ~segment);
  is_in_range = kSource == Source::kUp ? from >= limit : from <= limit;
  return is_in_range ? from : lane;
}

/// shfl.sync d{|p}, a, b, c, membermask. With p the operands begin at index 1 behind it.
template <Source kSource, bool kHasPredicate>
void shuffle(Warp& warp, const Instruction& in, LaneMask lanes) {
  constexpr std::size_t kFirst = kHasPredicate ? 2 : 1;
  const auto operand = [&](std::size_t i) { return warp.lanes<std::uint32_t>(in.at[kFirst + i]); };
  require_lanes(warp, in, operand(3)[std::countr_zero(lanes)], lanes);
  std::array<std::uint32_t, kWarpLanes> result{};
  LaneMask in_range = 0;
  for_each_lane(lanes, [&](int lane) {
    bool is_in_range = false;
    const int from = source_lane<kSource>(lane, static_cast<int>(operand(1)[lane] & 31), operand(2)[lane], is_in_range);
    if ((lanes >> from & 1) == 0) warp.stop_divergent(in, lanes);
    result[static_cast<std::size_t>(lane)] = operand(0)[from];
    in_range |= LaneMask{is_in_range} << lane;
  });
  for_each_lane(lanes,
                [&](int lane) { warp.lanes<std::uint32_t>(in.at[0])[lane] = result[static_cast<std::size_t>(lane)]; });
  if constexpr (kHasPredicate) {
    LaneMask& predicate = warp.predicate(in.at[1]);
    predicate = (predicate & ~lanes) | in_range;
  }
}

template <Source kSource>
void add_shuffle(FormTable& table, const std::string& name) {
  table.add("shfl.sync." + name + ".b32",
            {.run = shuffle<kSource, false>, .slots = {Slot::k32, Slot::k32, Slot::k32, Slot::k32, Slot::k32}});
  table.add("shfl.sync." + name + ".b32 0:2",
            {.run = shuffle<kSource, true>,
             .slots = {Slot::k32, Slot::kPredicate, Slot::k32, Slot::k32, Slot::k32, Slot::k32}});
}

}  // namespace

void add_warp_forms(FormTable& table) {
  for (const std::string name : {"bra", "bra.uni"}) table.add(name, {.slots = {Slot::kLabel}, .flow = Flow::kBranch});
  for (const std::string name : {"ret", "exit"}) table.add(name, {.flow = Flow::kExit});
  const auto barrier = [&](const std::string& name, Run run) {
    table.add(name, {.run = run, .slots = {Slot::kNumber}, .is_aligned = true});
    table.add(name + " 2", {.run = run, .slots = {Slot::kNumber, Slot::kNumber}, .is_aligned = true});
  };
  for (const std::string name : {"bar.sync", "barrier.sync.aligned"}) barrier(name, reach_barrier<true>);
  for (const std::string name : {"bar.arrive", "barrier.arrive.aligned"}) barrier(name, reach_barrier<false>);
  table.add("bar.warp.sync", {.run = meet_warp, .slots = {Slot::k32}});
  add_shuffle<Source::kUp>(table, "up");
  add_shuffle<Source::kDown>(table, "down");
  add_shuffle<Source::kXor>(table, "bfly");
  add_shuffle<Source::kIndex>(table, "idx");
}

}  // namespace plumb::test::ptx
