#include "planner/search/skeletons.h"

#include <utility>

#include "planner/evaluate/layout_order.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
namespace {

/// One micro-batch shows the operations of an order unless micro-batches enter at both ends: such schedules show all of
/// theirs with two a rank.
Skeleton skeleton_of(const Layout& layout) {
  const CatalogueEntry& entry = catalogue_entry(layout.schedule);
  Skeleton skeleton{.schedule = order_of(layout, entry.both_ends ? 2 * layout.pipeline : 1)};
  skeleton.order = stage_order(skeleton.schedule);
  skeleton.bound = bound_order(skeleton.schedule);
  skeleton.bound.pairs = entry.pairs;
  return skeleton;
}

}  // namespace

const Skeletons::Known& Skeletons::known(const Layout& layout) const {
  return known_.of({layout.schedule, layout.pipeline, layout.chunks, layout.group}, [&]() -> Known {
    try {
      return skeleton_of(layout);
    } catch (const ScheduleError& error) {
      return std::string(error.what());
    }
  });
}

const Skeleton* Skeletons::find(const Layout& layout) const {
  return std::get_if<Skeleton>(&known(layout));
}

const std::string& Skeletons::why_none(const Layout& layout) const {
  return std::get<std::string>(known(layout));
}

}}  // namespace plumb::planner
