#include "tests/ptx/machine/block.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace plumb::test::ptx {
namespace {

/// Fills shared memory at the begin: fp32, bf16 and fp16 that are no numbers.
constexpr std::byte kNoNumber{0xFF};

}  // namespace

Block::Block(const Program& program, const LaunchSize& size, const LaunchMemory& memory, std::uint32_t index)
    : index_(index),
      threads_(size.threads),
      memory_(memory),
      local_bytes_(program.local_bytes),
      clocks_(index, size.threads),
      shared_(static_cast<std::size_t>(program.static_shared_bytes + size.shared_bytes), kNoNumber),
      local_(static_cast<std::size_t>(program.local_bytes) * size.threads, kNoNumber),
      copies_(size.threads) {
  memory_.shared_log->clear();
  for (std::uint32_t first = 0; first < threads_; first += kWarpLanes) {
    const std::uint32_t lanes = std::min<std::uint32_t>(threads_ - first, kWarpLanes);
    Warp& warp = warps_.emplace_back(*this, program, first / kWarpLanes, kAllLanes >> (kWarpLanes - lanes));
    warp.set_special("%tid.x", [&](int lane) { return first + static_cast<std::uint32_t>(lane); });
    warp.set_special("%laneid", [](int lane) { return static_cast<std::uint32_t>(lane); });
    warp.set_special("%ctaid.x", [&](int) { return index; });
    warp.set_special("%ntid.x", [&](int) { return size.threads; });
    warp.set_special("%nctaid.x", [&](int) { return size.blocks; });
  }
}

void Block::run() {
  for (;;) {
    bool has_gone = false;
    for (Warp& warp : warps_)
      if (!warp.is_done() && !warp.is_waiting()) {
        warp.run();
        has_gone = true;
        if (warp.is_done()) std::ranges::for_each(barriers_, [&](Barrier& barrier) { release_if_complete(barrier); });
      }
    if (std::ranges::all_of(warps_, &Warp::is_done)) return;
    if (!has_gone) stop_stuck();
  }
}

BlockPhases Block::take_phases() {
  BlockPhases phases;
  for (Warp& warp : warps_) phases.push_back(warp.take_phases());
  return phases;
}

void Block::arrive(Warp& warp, const Instruction& in, std::uint32_t number, std::uint32_t threads, bool waits) {
  Barrier& barrier = barriers_.at(number);
  barrier.arrived += kWarpLanes;
  barrier.needed = threads;
  barrier.in = &in;
  clocks_.arrive(warp.index(), barrier.seen);
  if (waits) {
    warp.wait();
    barrier.waiting.push_back(warp.index());
  }
  release_if_complete(barrier);
}

void Block::release_if_complete(Barrier& barrier) {
  if (barrier.arrived == 0) return;
  const auto live = std::ranges::count_if(warps_, [](const Warp& warp) { return !warp.is_done(); });
  const auto needed = barrier.needed != 0 ? barrier.needed : static_cast<std::uint32_t>(live) * kWarpLanes;
  if (barrier.arrived < needed) return;
  for (const std::size_t warp : barrier.waiting) {
    clocks_.leave(warp, barrier.seen);
    warps_[warp].go_on();
  }
  barrier = {};
}

void Block::stop_stuck() {
  for (const Barrier& barrier : barriers_)
    if (!barrier.waiting.empty())
      report().add(FaultKind::kStuckBarrier, *barrier.in, index_,
                   static_cast<std::uint32_t>(barrier.waiting.front()) * kWarpLanes,
                   fmt::format("waits for ever: {} threads have come, and the others wait elsewhere", barrier.arrived));
  throw StoppedKernel();
}

std::byte* Block::fail(FaultKind kind, const Instruction& in, std::uint32_t thread, const std::string& what) {
  report().add(kind, in, index_, thread, what);
  return nullptr;
}

std::byte* Block::reach(Space space, std::uint64_t address, int bytes, AccessKind kind, const Instruction& in,
                        std::uint32_t thread) {
  if (space == Space::kGeneric) {
    space = address >= kLocalWindow ? Space::kLocal : address >= kSharedWindow ? Space::kShared : Space::kGlobal;
    if (space == Space::kLocal) address -= kLocalWindow;
    if (space == Space::kShared) address -= kSharedWindow;
  }
  const char* const does = kind == AccessKind::kRead ? "reads" : "writes";
  if (address % static_cast<std::uint64_t>(bytes) != 0)
    fail(FaultKind::kMisaligned, in, thread, fmt::format("{} {} bytes at {:#x}", does, bytes, address));
  if (space == Space::kGlobal) {
    GlobalMemory::Buffer* const buffer = memory_.global->find(address, static_cast<std::uint64_t>(bytes));
    if (buffer == nullptr)
      return fail(FaultKind::kOutOfBounds, in, thread,
                  fmt::format("{} {} bytes at {:#x}, which no buffer has", does, bytes, address));
    look_at(buffer->log, static_cast<std::int64_t>(address - buffer->begin), bytes, kind, false, in, thread);
    return reinterpret_cast<std::byte*>(address);
  }
  const auto end = address + static_cast<std::uint64_t>(bytes);
  const auto size = space == Space::kShared  ? shared_.size()
                    : space == Space::kLocal ? static_cast<std::size_t>(local_bytes_)
                                             : memory_.parameters.size();
  if (end > size || end < address)
    return fail(FaultKind::kOutOfBounds, in, thread,
                fmt::format("{} bytes {} to {} of {} in {} memory", does, address, end - 1, size,
                            space == Space::kShared  ? "shared"
                            : space == Space::kLocal ? "local"
                                                     : "parameter"));
  if (space == Space::kLocal) return local_.data() + static_cast<std::size_t>(local_bytes_) * thread + address;
  if (space == Space::kParameter) return const_cast<std::byte*>(memory_.parameters.data()) + address;
  look_at(*memory_.shared_log, static_cast<std::int64_t>(address), bytes, kind, true, in, thread);
  return shared_.data() + address;
}

void Block::look_at(AccessLog& log, std::int64_t first, int bytes, AccessKind kind, bool needs_write,
                    const Instruction& in, std::uint32_t thread) {
  const bool reads = kind == AccessKind::kRead;
  const std::optional<Conflict> found =
      reads ? log.read(first, bytes, thread, clocks_, needs_write) : log.write(first, bytes, thread, clocks_);
  if (!found) return;
  const std::string place = fmt::format("{} bytes {} to {} of {}", reads ? "reads" : "writes", first, first + bytes - 1,
                                        needs_write ? "shared memory" : "a buffer");
  const std::string other = fmt::format("thread {} of block {}", found->other % threads_, found->other / threads_);
  if (found->kind == Conflict::Kind::kUnwritten)
    fail(FaultKind::kUnwritten, in, thread, place + ", which nobody has written");
  else if (found->kind == Conflict::Kind::kPendingCopy)
    fail(FaultKind::kPendingCopy, in, thread, place + ", for whose copy " + other + " has not waited");
  else
    fail(FaultKind::kRace, in, thread,
         fmt::format("{}, which {} has {} with no barrier between", place, other,
                     found->kind == Conflict::Kind::kAfterRead ? "read" : "written"));
}

void Block::start_copy(std::uint32_t thread, std::uint64_t to, std::span<const std::byte> from, const Instruction& in) {
  const int bytes = static_cast<int>(from.size());
  if (reach(Space::kShared, to, bytes, AccessKind::kWrite, in, thread) == nullptr) return;
  Copy copy{.group = copies_[thread].group, .to = static_cast<std::int64_t>(to), .count = bytes};
  std::ranges::copy(from, copy.bytes.begin());
  copies_[thread].pending.push_back(copy);
  memory_.shared_log->begin_copy(copy.to, bytes);
}

void Block::wait_for_copies(std::uint32_t thread, std::uint32_t pending) {
  const std::uint32_t group = copies_[thread].group;
  land_copies(thread, group > pending ? group - pending : 0);
}

void Block::wait_for_all_copies(std::uint32_t thread) {
  commit_copies(thread);
  land_copies(thread, copies_[thread].group);
}

void Block::land_copies(std::uint32_t thread, std::uint32_t groups) {
  std::vector<Copy>& pending = copies_[thread].pending;
  std::size_t kept = 0;
  for (const Copy& copy : pending) {
    if (copy.group >= groups) {
      pending[kept++] = copy;
      continue;
    }
    std::memcpy(shared_.data() + copy.to, copy.bytes.data(), static_cast<std::size_t>(copy.count));
    memory_.shared_log->end_copy(copy.to, copy.count, clocks_.now(thread));
  }
  pending.resize(kept);
}

}  // namespace plumb::test::ptx
