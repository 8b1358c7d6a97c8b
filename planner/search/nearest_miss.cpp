#include "planner/search/nearest_miss.h"

#include <utility>

#include "planner/search/held_bytes.h"
#include "planner/search/layout_tree.h"
#include "planner/search/memory_bound.h"
#include "planner/search/skeletons.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// Names the value where the space leaves it open.
template <typename Value>
void prefer(Values<Value>& values, Value value) {
  if (values.named.empty() && values.holds(value)) values.named = {value};
}

/// Everything that saves memory at once.
LayoutSpace frugal(LayoutSpace space) {
  prefer(space.recompute, Recompute::kFull);
  prefer(space.microbatch, std::int64_t{1});
  prefer(space.shard, 0);
  prefer(space.split, {});
  if (space.chunks.is_open() && space.schedule.is_open()) {
    space.chunks.named = {1};
    space.schedule.named = {"1f1b"};
  }
  return space;
}

/// Looks at layouts until one fits.
class MissSearch {
 public:
  MissSearch(Pricing& pricing, const LayoutSpace& space)
      : pricing_(pricing), tree_(pricing, space, skeletons_), held_(pricing) {}

  std::optional<NearestMiss> run(std::optional<NearestMiss> known) {
    nearest_ = std::move(known);
    for (const Layout& family : tree_.families().layouts) {
      for (const Layout& core : tree_.cores(family).layouts) {
        if (fits()) return nearest_;
        if (!lacks_more(core)) look_at(core);
      }
    }
    return nearest_;
  }

 private:
  bool fits() const { return nearest_ && !nearest_->shortfall; }

  /// True if the core's layouts lack as much as is known, or more.
  bool lacks_more(const Layout& core) const {
    if (!nearest_) return false;
    const std::int64_t peak = least_peak_bytes(pricing_, most_frugal_variant(core), *skeletons_.find(core));
    const auto lacks = memory_shortfall({peak}, largest_device(pricing_.cluster()), pricing_.memory_headroom(core));
    return lacks && lacks->missing_bytes >= nearest_->shortfall->missing_bytes;
  }

  void look_at(const Layout& core) {
    for (const Layout& layout : tree_.layouts(core).layouts) {
      try {
        const auto lacks = held_.shortfall(layout);
        if (!lacks || !nearest_ || lacks->missing_bytes < nearest_->shortfall->missing_bytes)
          nearest_ = {.layout = layout, .shortfall = lacks};
      } catch (const ScheduleError&) {  // it has no order of so many micro-batches
      }
      if (fits()) return;
    }
  }

  Pricing& pricing_;
  Skeletons skeletons_;
  LayoutTree tree_;
  HeldBytes held_;
  std::optional<NearestMiss> nearest_;
};

}  // namespace

std::optional<NearestMiss> frugal_miss(Pricing& pricing, const LayoutSpace& space) {
  return MissSearch(pricing, frugal(space)).run(std::nullopt);
}

std::optional<NearestMiss> nearest_miss(Pricing& pricing, const LayoutSpace& space) {
  return MissSearch(pricing, space).run(frugal_miss(pricing, space));
}

}}  // namespace plumb::planner
