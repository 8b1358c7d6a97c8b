// cp.async: copies from global to shared memory that land when their thread waits for them. A target that is
// read or written before is a fault, since it may have either value.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

/// Returns the first `count` of the 16 bytes at most, and zeros.
std::array<std::byte, 16> source_of(Warp& warp, const Instruction& in, int lane, std::uint32_t count) {
  std::array<std::byte, 16> bytes{};
  const std::uint64_t address = warp.address(in.address[1], lane);
  const auto read = [&](std::uint32_t first, std::uint32_t length) {
    const std::byte* const from = warp.block().reach(Space::kGlobal, address + first, static_cast<int>(length),
                                                     AccessKind::kRead, in, warp.thread(lane));
    if (from != nullptr) std::memcpy(bytes.data() + first, from, length);
  };
  if (count == in.immediate[0])
    read(0, count);
  else
    for (std::uint32_t i = 0; i < count; ++i) read(i, 1);
  return bytes;
}

/// The source is read at once. Bytes of the target beyond `source_bytes` become zeros.
void copy_lane(Warp& warp, const Instruction& in, int lane, std::uint32_t source_bytes) {
  const std::array<std::byte, 16> bytes = source_of(warp, in, lane, source_bytes);
  warp.block().start_copy(warp.thread(lane), warp.address(in.address[0], lane), std::span(bytes).first(in.immediate[0]),
                          in);
}

void copy_whole(Warp& warp, const Instruction& in, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) { copy_lane(warp, in, lane, in.immediate[0]); });
}
void copy_some(Warp& warp, const Instruction& in, LaneMask lanes) {
  const auto* const source_bytes = warp.lanes<std::uint32_t>(in.at[0]);
  for_each_lane(lanes, [&](int lane) { copy_lane(warp, in, lane, std::min(source_bytes[lane], in.immediate[0])); });
}

void commit(Warp& warp, const Instruction&, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) { warp.block().commit_copies(warp.thread(lane)); });
}
void wait_for_group(Warp& warp, const Instruction& in, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) { warp.block().wait_for_copies(warp.thread(lane), in.immediate[0]); });
}
void wait_for_all(Warp& warp, const Instruction&, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) { warp.block().wait_for_all_copies(warp.thread(lane)); });
}

}  // namespace

void add_async_copy_forms(FormTable& table) {
  for (const std::string level : {"cp.async.ca.shared.global", "cp.async.cg.shared.global"}) {
    table.add(level, {.run = copy_whole, .slots = {Slot::kAddress, Slot::kAddress, Slot::kNumber}});
    table.add(level + " 4", {.run = copy_some, .slots = {Slot::kAddress, Slot::kAddress, Slot::kNumber, Slot::k32}});
  }
  table.add("cp.async.commit_group", {.run = commit});
  table.add("cp.async.wait_group", {.run = wait_for_group, .slots = {Slot::kNumber}});
  table.add("cp.async.wait_all", {.run = wait_for_all});
}

}  // namespace plumb::test::ptx
