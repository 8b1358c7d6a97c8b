#pragma once
// Plans a device's replay of a schedule: its calls, and an arena a rank in which every temporary tensor has its place.
// A place is used again only behind an event that says that nobody needs what was there.

#include <cstdint>
#include <span>

#include "executor/device_plan/device_buffers.h"
#include "executor/device_plan/device_program.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Offsets are multiples of it: what vectorised loads, tensor cores and bulk copies ask for, with room (128 bytes do).
inline constexpr std::int64_t kArenaAlignment = 512;

/// `lowered` breaks no rule of schedules/rules/validate.h; `costs` gives the bytes of its stages, and durations by
/// which lifetimes are guessed: other durations than these cost time, not correctness. The same inputs give the same
/// program.
///
/// `agrees`: as device_calls(). `waits`: those that others imply are left out, or all are there (world_calls.h).
/// stage_bytes: [stage]; none: no stage has such.
/// of_microbatches: bytes of stages whose micro-batches are not alike. passes: those in which copies of a stage meet.
/// pairs: as device_calls(); neither of the two writes where the other one reads.
enum class DeviceWaits : std::uint8_t { kNeeded, kAll };
DeviceProgram plan_device(const Schedule& lowered, const CostTable& costs, bool agrees = false,
                          DeviceWaits waits = DeviceWaits::kNeeded, std::span<const DeviceStageBytes> stage_bytes = {},
                          const MicrobatchMemory& of_microbatches = {}, JointPasses passes = JointPasses::kNone,
                          std::span<const MessagePair> pairs = {});

}}  // namespace plumb::executor
