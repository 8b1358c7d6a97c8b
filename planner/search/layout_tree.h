#pragma once
// The layouts of a space as a tree that is grown where a search looks. A family has the degrees and the micro-batch. Its
// cores add what decides the work of the layers: schedule, ZeRO, sequence parallelism, recomputation and the way of
// context parallelism. The layouts of a core add what makes no layer's pass shorter: split, groups, buckets and offload.
//
//   LayoutTree tree(pricing, space, skeletons);
//   for (const Layout& family : tree.families().layouts)
//     for (const Layout& core : tree.cores(family).layouts)
//       for (const Layout& layout : tree.layouts(core).layouts) ...
//
// At each level the simplest come first (search/layout_choices.h). A layout that cannot exist, or that the framework
// does not run, is a conflict. Threads may open branches at the same time.

#include <functional>
#include <optional>
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

struct Enumeration {
  std::vector<Layout> layouts;       ///< without conflict
  std::vector<Rejection> conflicts;  ///< each with the keys that cause it
};

/// Conflicts, each by the keys that cause it, once.
class Conflicts {
 public:
  void add(std::vector<Rejection> found);
  const std::vector<Rejection>& all() const { return all_; }

 private:
  std::vector<Rejection> all_;
  std::set<std::string> said_;
};

class LayoutTree {
 public:
  /// `pricing` and `skeletons` must outlive it.
  LayoutTree(Pricing& pricing, LayoutSpace space, const Skeletons& skeletons);
  LayoutTree(const LayoutTree&) = delete;
  LayoutTree& operator=(const LayoutTree&) = delete;

  const LayoutSpace& space() const { return space_; }
  const LayoutChoices& choices() const { return choices_; }

  /// Families have 1, none and 1f1b for the keys that they leave open, as cores have for theirs.
  const Enumeration& families() const { return families_; }
  Enumeration cores(const Layout& family) const;
  /// Returns the family in each of its schedules, without what else a core has.
  Enumeration schedules(const Layout& family) const;
  Enumeration layouts(const Layout& core) const;

  /// Returns how many layers of the model a core's layouts rebuild at least, where its recompute_layers is above 0.
  int fewest_rebuilt_layers(const Layout& core) const;

 private:
  void grow_families();
  void grow_family(Layout degrees);
  Enumeration passes(const Layout& schedule) const;
  void add_issues(Enumeration& layouts, Layout layout) const;
  std::optional<Rejection> why_not(const Layout& layout) const;
  std::vector<std::vector<int>> splits(const Layout& core) const;

  Pricing& pricing_;
  LayoutSpace space_;
  const Skeletons& skeletons_;
  LayoutChoices choices_;
  Enumeration families_;
};

/// Calls visit(layout) for each layout of the space, in the order of the tree, until it returns false.
void visit_layouts(Pricing& pricing, const LayoutSpace& space, const std::function<bool(const Layout&)>& visit);

/// Returns the whole tree. Throws SpecError if it has more than kMostLayouts (schedules/limits.h).
Enumeration enumerate_layouts(Pricing& pricing, const LayoutSpace& space);

}}  // namespace plumb::planner
