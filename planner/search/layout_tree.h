#pragma once
// The layouts of a space as a tree that is grown where a search looks. A family has the degrees and the micro-batch. Its
// cores add what decides the work of the layers: schedule, ZeRO, sequence parallelism, recomputation and the way of
// context parallelism. The layouts of a core add what makes no layer's pass shorter: split, groups, buckets and offload.
//
//   LayoutTree tree(pricing, space, skeletons);
//   for (const Layout& family : tree.families())
//     for (const Layout& core : tree.cores(family))
//       for (const Layout& layout : tree.layouts(core)) ...
//
// At each level the simplest come first (search/layout_choices.h). A layout that cannot exist, or that the framework
// does not run, is a conflict.

#include <set>
#include <string>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/search/layout_choices.h"
#include "planner/search/layout_conflict.h"
#include "planner/search/skeletons.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

class LayoutTree {
 public:
  /// `pricing` and `skeletons` must outlive it.
  LayoutTree(Pricing& pricing, LayoutSpace space, Skeletons& skeletons);
  LayoutTree(const LayoutTree&) = delete;
  LayoutTree& operator=(const LayoutTree&) = delete;

  const LayoutSpace& space() const { return space_; }
  const LayoutChoices& choices() const { return choices_; }

  /// Families have 1, none and 1f1b for the keys that they leave open, as cores have for theirs.
  const std::vector<Layout>& families() const { return families_; }
  std::vector<Layout> cores(const Layout& family);
  /// Returns the family in each of its schedules, without what else a core has.
  std::vector<Layout> schedules(const Layout& family);
  std::vector<Layout> layouts(const Layout& core);

  /// Returns what was found to be in conflict so far, each by the keys that cause it, once.
  const std::vector<Rejection>& conflicts() const { return conflicts_; }

 private:
  void grow_families();
  void grow_family(Layout degrees);
  void add_passes(const Layout& schedule, std::vector<Layout>& cores);
  bool can_be(const Layout& layout);
  std::vector<std::vector<int>> splits(const Layout& core);
  void conflict(LayoutRequest keys, std::string reason);

  Pricing& pricing_;
  LayoutSpace space_;
  Skeletons& skeletons_;
  LayoutChoices choices_;
  std::vector<Layout> families_;
  std::vector<Rejection> conflicts_;
  std::set<std::string> said_;
};

struct Enumeration {
  std::vector<Layout> layouts;       ///< without conflict
  std::vector<Rejection> conflicts;  ///< each with the keys that cause it
};

/// Returns the whole tree. Throws SpecError if it has more than kMostLayouts (schedules/limits.h).
Enumeration enumerate_layouts(Pricing& pricing, const LayoutSpace& space);

}}  // namespace plumb::planner
