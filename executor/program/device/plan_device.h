#pragma once
// Plans a device's replay of a schedule: its calls, and an arena for each rank in which every temporary tensor has its
// place. A place is used again only behind an event that says that its last tensor is no longer needed.

#include <cstdint>
#include <span>

#include "executor/program/device/device_buffers.h"
#include "executor/program/device/device_program.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Offsets in the arena are multiples of this many bytes. Vectorised loads, tensor cores and bulk copies require 128 at
/// most.
inline constexpr std::int64_t kArenaAlignment = 512;

/// `lowered` breaks no rule of schedules/rules/validate.h. `costs` gives the bytes of its stages, and the durations
/// from which lifetimes are guessed; wrong durations cost time, not correctness. The same inputs give the same program.
///
/// agrees: see device_calls(). waits: kNeeded leaves out waits that others imply, kAll keeps them (world_calls.h).
/// stage_bytes: [stage]; empty: no stage has such bytes. of_microbatches: bytes of stages whose micro-batches differ.
/// passes: those in which copies of a stage meet. pairs: see device_calls(); neither message of a pair writes where the
/// other one reads.
enum class DeviceWaits : std::uint8_t { kNeeded, kAll };
DeviceProgram plan_device(const Schedule& lowered, const CostTable& costs, bool agrees = false,
                          DeviceWaits waits = DeviceWaits::kNeeded, std::span<const DeviceStageBytes> stage_bytes = {},
                          const MicrobatchMemory& of_microbatches = {}, JointPasses passes = JointPasses::kNone,
                          std::span<const MessagePair> pairs = {});

}}  // namespace plumb::executor
