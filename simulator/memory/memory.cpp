#include "simulator/memory/memory.h"

#include <algorithm>

#include "simulator/memory/memory_changes.h"

namespace plumb { inline namespace simulator {
namespace {

/// Adds to one series of samples: all changes of one moment are one sample.
void sample(std::vector<MemorySample>& samples, SimTime time, std::int64_t bytes) {
  if (samples.empty() || samples.back().bytes != bytes) samples.push_back({.time = time, .bytes = bytes});
}

/// Chunks are counted in list order, since an action without duration still holds one.
RankMemory sum_up(const std::vector<MemoryChange>& changes, bool keep_samples) {
  RankMemory memory;
  std::int64_t total = 0;
  BytesByKind by_kind{};
  std::array<bool, kMemoryKindCount> held{};  // true for kinds that were held by some time
  int activations = 0;
  const auto settle = [&](SimTime time) {
    memory.peak_bytes = std::max(memory.peak_bytes, total);
    if (!keep_samples) return;
    sample(memory.samples, time, total);
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
      if (held[kind]) sample(memory.by_kind[kind], time, by_kind[kind]);
    }
  };
  SimTime now{0};
  for (const MemoryChange& change : changes) {
    if (change.time != now) settle(now);
    now = change.time;
    total += change.bytes;
    const auto kind = static_cast<std::size_t>(change.kind);
    by_kind[kind] += change.bytes;
    held[kind] = held[kind] || change.bytes != 0;
    activations += change.activations;
    memory.peak_activations = std::max(memory.peak_activations, activations);
  }
  settle(now);
  return memory;
}

}  // namespace

std::vector<RankMemory> memory_by_rank(const Schedule& schedule, const ActionTable& table, const CostTable& costs,
                                       const ActionTimes& times, bool keep_samples) {
  std::vector<RankMemory> ranks;
  for (const auto& changes : memory_changes(schedule, table, costs, times))
    ranks.push_back(sum_up(changes, keep_samples));
  return ranks;
}

}}  // namespace plumb::simulator
