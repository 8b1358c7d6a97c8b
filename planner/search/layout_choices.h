#pragma once
// The values of each key that a search takes up by itself, the simplest first. A key of which the space names values has
// those; bounds leave those of the open values that lie within.
//
// Degrees dp, tp, pp, cp: divisors of the devices whose product they are. ep: divisors of the experts and of the ranks
// of a stage; etp: divisors of tp and of an expert's channels. Micro-batch: divisors of a replica's batch that have no
// divisor in common with cp. Schedules: those of the framework, and 1f1b, gpipe and interleaved where it has no list.
// Chunks: 2 to 8, and divisors of a rank's layers. ZeRO 0 to 3 where there are replicas, over all of them or over
// groups of neighbours. The optimizer on the devices or in the hosts, where the framework has both. Full recomputation
// of any number of a stage's layers. Both orders of ranks where they differ. Splits: the framework's own, and one that
// is balanced by cost where the user may name it.
//
// A wide space has besides: every synchronous schedule, any number of micro-batches of a chunk in a row, buckets of
// gradients, and activations in the hosts.

#include <string>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

struct ScheduleChoice {
  std::string name;
  int chunks = 1;
};

class LayoutChoices {
 public:
  /// Both must outlive it.
  LayoutChoices(const Pricing& pricing, const LayoutSpace& space) : pricing_(pricing), space_(space) {}

  // Each needs the degrees of the layout that are named here before it.
  std::vector<int> tensor() const;
  std::vector<int> pipeline() const;
  std::vector<int> context(const Layout& degrees) const;
  std::vector<int> data(const Layout& degrees) const;
  std::vector<int> expert(const Layout& degrees) const;
  std::vector<int> expert_tensor(const Layout& degrees) const;
  std::vector<std::int64_t> microbatch(const Layout& degrees) const;

  // These need all degrees and the micro-batch, and each the keys that are named here before it.
  std::vector<ScheduleChoice> schedule(const Layout& family) const;
  std::vector<int> zero(const Layout& family) const;
  std::vector<bool> sequence_parallel(const Layout& family) const;
  std::vector<Recompute> recompute() const;
  std::vector<int> recompute_layers(const Layout& core) const;
  std::vector<ContextKind> context_kind(const Layout& family) const;
  std::vector<int> shard(const Layout& core) const;
  std::vector<RankOrder> order(const Layout& core) const;
  std::vector<int> group(const Layout& core) const;
  std::vector<std::int64_t> bucket_mib(const Layout& core) const;
  std::vector<Offload> offload(const Layout& core) const;

 private:
  std::vector<std::string> open_schedules() const;
  bool needs_zero_to_offload(Layout layout) const;
  std::vector<int> open_chunks(const std::string& schedule, int pipeline) const;

  const Pricing& pricing_;
  const LayoutSpace& space_;
};

}}  // namespace plumb::planner
