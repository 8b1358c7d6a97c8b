#pragma once
// Says when a rank holds most, what it runs at that moment, and which stages hold the bytes.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/action.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "traces/memory_kind.h"
#include "traces/timeline.h"

namespace plumb { inline namespace simulator {

/// Bytes of one kind that one stage holds. BPipe's partner holds bytes of a stage that is not its own.
struct MemoryHolder {
  MemoryKind kind = MemoryKind::kParameters;
  int stage = 0;
  std::int64_t bytes = 0;
  std::vector<int> microbatches;  ///< ascending; for activations, recomputed ones, workspace and messages
};

struct MemoryPeak {
  SimTime time{0};  ///< the first moment at which the rank holds most
  std::int64_t bytes = 0;
  std::optional<Action> running;      ///< the compute action that began last; nothing while the rank idles
  std::vector<MemoryHolder> holders;  ///< most bytes first, then by kind and stage; their sum is `bytes`
};

/// Returns [rank] its peak in the simulation of `lowered` under `costs` that gave this timeline. Empty for an empty
/// timeline.
std::vector<MemoryPeak> memory_peaks(const Schedule& lowered, const CostTable& costs, const Timeline& predicted);

/// Returns the bytes that the holders of each kind hold together.
BytesByKind bytes_by_kind(const MemoryPeak& peak);

}}  // namespace plumb::simulator
