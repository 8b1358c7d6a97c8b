#pragma once
// The layouts of a search, and what is known of the time of each. More is learned of a layout step by step: the work of
// its layers (search/work_bound.h), its priced stages (search/bounds.h), its step with links of its own, and its step on
// shared links, as `plumb simulate` tells it. No time that comes later is less than one that comes before.
//
// Layouts come out of a tree (search/layout_tree.h) that is opened where the search looks. No layout below a family or a
// core takes less time than its bound.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/fit_advisor.h"
#include "planner/search/layout_tree.h"
#include "planner/search/objective.h"
#include "planner/search/skeletons.h"
#include "planner/search/work_bound.h"

namespace plumb { inline namespace planner {

/// Says what the time of a candidate is.
enum class Known : std::uint8_t {
  kWork,     ///< a bound by the work of its layers
  kStages,   ///< a bound by its priced stages
  kPrivate,  ///< its step where every transfer has its links to itself
  kShared,   ///< its step on shared links
  kOut,      ///< none: it does not fit
};

/// Numbers of family, core and layout, in the order of the tree; 0 for those below a family or a core.
using TreePlace = std::array<std::uint32_t, 3>;

struct Candidate {
  Layout layout;
  TreePlace place{};
  SimTime time{0};
  double value = 0;  ///< of the objective, as far as it is known
  Known known = Known::kWork;
};

/// Indices from `first` up to `end`.
struct IndexRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// A family or a core.
struct Branch {
  Layout layout;  ///< with the keys of its level
  TreePlace place{};
  SimTime bound{0};
  double value = 0;                 ///< that no layout below it is below
  std::optional<IndexRange> below;  ///< what it was opened to
};

class Candidates {
 public:
  /// A core whose layouts cannot fit (search/memory_bound.h) is not opened, unless candidates are to be complete. With an
  /// `order` of the user's own only layouts of its ranks, stages and micro-batches count; they have no bound, so
  /// that each is simulated. Throws SpecError if the space has another pp or v than the order.
  Candidates(Pricing& pricing, const LayoutSpace& space, const std::optional<Schedule>& order, bool complete = true,
             Objective objective = {});

  const std::vector<Branch>& families() const { return families_; }
  const Branch& core(std::size_t index) const { return cores_[index]; }

  /// Return the cores of a family, and the candidates of a core. Throws SpecError if more than kMostLayouts
  /// (schedules/limits.h) are open.
  IndexRange open_family(std::size_t index);
  IndexRange open_core(std::size_t index);

  /// The candidates that are open stand in the order in which they were opened.
  std::size_t size() const { return candidates_.size(); }
  const Candidate& operator[](std::size_t index) const { return candidates_[index]; }
  const Layout& layout(std::size_t index) const { return candidates_[index].layout; }
  const std::vector<Rejection>& conflicts() const { return tree_.conflicts(); }
  const LayoutSpace& space() const { return tree_.space(); }
  /// True if no core that was opened has a layout, of whatever number of micro-batches.
  bool none_exists() const { return !one_exists_; }

  /// Returns how many cores were not opened because their layouts cannot fit.
  std::int64_t cores_too_large() const { return cores_too_large_; }

  /// Takes the next step for a candidate that is neither kShared nor kOut.
  void learn_more(std::size_t index);
  /// Returns how many such steps were taken.
  std::int64_t evaluations() const { return evaluations_taken_; }

  /// Return the evaluation of a candidate that is kShared.
  const Evaluation& evaluation(std::size_t index) const { return evaluations_.at(index); }
  Evaluation take_evaluation(std::size_t index) { return std::move(evaluations_.extract(index).mapped()); }

  /// Returns the shortfall of a candidate that is kOut; nothing where the hosts cannot hold what is offloaded, or the
  /// schedule has no such order.
  std::optional<MemoryShortfall> shortfall(std::size_t index) const { return out_.at(index).shortfall; }
  /// Returns why a candidate is kOut, and the nearest change with which it fits.
  std::string why_out(std::size_t index);

 private:
  struct Out {
    std::optional<MemoryShortfall> shortfall;
    std::string reason;  ///< where it is not the device's memory
  };

  bool cannot_fit(const Layout& core);
  void learn_next(std::size_t index);
  SimTime bound_of_family(const Layout& family);
  SimTime bound_by_stages(const Layout& layout);
  void bound_below(Candidate& candidate, SimTime time) const;
  Evaluation on_shared_links(std::size_t index);
  std::optional<std::string> host_conflict(const Evaluation& evaluation) const;
  void take_out(std::size_t index, Out why);

  Pricing& pricing_;
  const std::optional<Schedule>& order_;
  Skeletons skeletons_;
  LayoutTree tree_;
  FitAdvisor advisor_;
  WorkBounds work_;
  std::vector<Branch> families_;
  std::vector<Branch> cores_;
  std::vector<Candidate> candidates_;
  Objective objective_;
  bool complete_ = true;
  bool one_exists_ = false;
  std::int64_t cores_too_large_ = 0;
  std::int64_t evaluations_taken_ = 0;
  // By index:
  std::map<std::size_t, PricedLayout> priced_;     ///< of those that are kPrivate
  std::map<std::size_t, Evaluation> evaluations_;  ///< of those that are kShared
  std::map<std::size_t, Out> out_;
};

}}  // namespace plumb::planner
