#pragma once
// The tree of a search (search/layout_tree.h), opened where the search looks, and what is known of the time of each of its
// layouts. Families and cores are bounded by the work of their layers (search/work_bound.h). When a core is opened,
// those of its layouts that hold no more than a device has (search/held_bytes.h) are priced (search/bounds.h), and those
// that may be a row are held. More is learned of them step by step: the step with links of their own, and the step on
// shared links, as `plumb simulate` tells it. No time
// that comes later is less than one that comes before, and no layout below a family or a core takes less time than its
// bound.
//
// Steps are taken side by side on the machine's cores. What they answer depends on neither their number nor their pace.

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/own_links_steps.h"
#include "planner/search/bounds.h"
#include "planner/search/fit_advisor.h"
#include "planner/search/held_bytes.h"
#include "planner/search/layout_tree.h"
#include "planner/search/moved_activations.h"
#include "planner/search/objective.h"
#include "planner/search/skeletons.h"
#include "planner/search/work_bound.h"
#include "planner/threads/workers.h"

namespace plumb { inline namespace planner {

/// Says what the time of a candidate is.
enum class Known : std::uint8_t {
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
  double value = 0;             ///< of the objective, as far as it is known
  double own_links_value = 0;   ///< the value where transfers have their links to themselves; 0: not known
  std::int64_t peak_bytes = 0;  ///< that its fullest rank holds, as far as it is known
  Known known = Known::kStages;
};

/// Layouts that were seen when their cores were opened.
struct SeenLayouts {
  std::int64_t all = 0;              ///< without conflict
  std::int64_t too_large = 0;        ///< that cannot fit, and were not priced
  std::int64_t cores_too_large = 0;  ///< cores that were not opened because none of their layouts can fit
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

enum class Level : std::uint8_t { kFamily, kCore, kCandidate };

/// A branch or a candidate, ordered by the least value that it may have, and of equals by its place in the tree.
struct Node {
  double value = 0;
  TreePlace place{};
  Level level = Level::kFamily;
  std::size_t index = 0;  ///< among those of its level

  friend auto operator<=>(const Node&, const Node&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};

struct CandidateOptions {
  bool complete = true;  ///< false: layouts that cannot fit (search/memory_bound.h) are not priced
  double most = std::numeric_limits<double>::infinity();  ///< branches and layouts of a greater value are not kept
  SearchObjective objective;
  int threads = 0;  ///< that take steps side by side; 0: one for each core
};

class Candidates {
 public:
  /// With an `order` of the user's own only layouts of its ranks, stages and micro-batches count; they have no bound, so
  /// that each is simulated. Throws SpecError if the space has another pp or v than the order.
  Candidates(Pricing& pricing, const LayoutSpace& space, const std::optional<Schedule>& order,
             const CandidateOptions& options = {});

  const std::vector<Branch>& families() const { return families_; }
  const Branch& core(std::size_t index) const { return cores_[index]; }
  Node node_of(Level level, std::size_t index) const;

  /// Takes a step with each node: a family is opened to its cores, a core to its candidates, and of a candidate that is
  /// neither kShared nor kOut more is learned. Returns what came of each, in their order. Throws SpecError if more than
  /// kMostLayouts (schedules/limits.h) are open.
  std::vector<Node> take_steps(std::span<const Node> nodes);

  /// The candidates that are open stand in the order in which they were opened.
  std::size_t size() const { return candidates_.size(); }
  const Candidate& operator[](std::size_t index) const { return candidates_[index]; }
  const Layout& layout(std::size_t index) const { return candidates_[index].layout; }
  const std::vector<Rejection>& conflicts() const { return conflicts_.all(); }
  const LayoutSpace& space() const { return tree_.space(); }
  Pricing& pricing() const { return pricing_; }
  const std::optional<Schedule>& order() const { return order_; }
  /// True if no core has a layout, of whatever number of micro-batches, as far as they were looked at.
  bool none_exists() const { return seen_.all + seen_.cores_too_large == 0; }

  const SeenLayouts& seen() const { return seen_; }
  /// From now on a core is not opened whose layouts all hold so much memory or more.
  void limit_peak(std::int64_t bytes) { peak_limit_ = bytes; }

  /// Returns how many steps were taken with candidates, each of which simulates one.
  std::int64_t evaluations() const { return evaluations_taken_; }

  /// Return the evaluation of a candidate that is kShared.
  const Evaluation& evaluation(std::size_t index) const { return evaluations_.at(index); }
  Evaluation take_evaluation(std::size_t index) { return std::move(evaluations_.extract(index).mapped()); }

  /// Returns why a candidate is kOut, and the nearest change with which it fits.
  std::string why_out(std::size_t index);

  /// Returns the candidate that is kOut and lacks least memory; nothing if there is none.
  std::optional<std::size_t> nearest_miss() const { return nearest_miss_; }
  /// Returns the bytes that it lacks; 0 if there is none.
  std::int64_t missing_bytes() const { return nearest_miss_ ? out_.at(*nearest_miss_).shortfall->missing_bytes : 0; }

 private:
  struct Out {
    std::optional<MemoryShortfall> shortfall;
    std::string reason;  ///< where it is not the device's memory
  };
  struct Opened {
    std::vector<Branch> cores;          ///< of a family
    std::vector<Candidate> candidates;  ///< of a core
    std::vector<Rejection> conflicts;
    SeenLayouts seen;
  };
  struct Learned {
    Candidate candidate;
    std::optional<Evaluation> evaluation;
    std::optional<Out> out;
  };
  using Step = std::variant<Opened, Learned>;

  Step step_with(const Node& node);
  void bound_families();
  LeastTimes bound_of(const Layout& family, const std::vector<Layout>& schedules);
  Opened open_family(const Branch& family);
  Opened open_core(const Branch& core);
  IndexRange add(Opened opened);
  bool cannot_fit(Layout core, const Offload& offload);
  using HeldTooMuch = std::vector<std::pair<Layout, bool>>;  // of a core's layouts
  bool holds_too_much(const Layout& layout, HeldTooMuch& known);
  bool holds_too_much(const Layout& layout);
  Learned learn_more(const Candidate& candidate);
  Learned learn_step(const Candidate& candidate);
  using StageBounds = std::vector<std::pair<Layout, LeastTimes>>;  // of a core's layouts, without their group
  LeastTimes bound_by_stages(const Layout& layout, StageBounds& known_bounds);
  LeastTimes bound_of_stages(const Layout& layout, const Skeleton& skeleton, bool moves);
  void note_miss(std::size_t index, const MemoryShortfall& shortfall);
  Candidate bounded(Candidate candidate, Known known, const LeastTimes& least) const;
  Evaluation on_shared_links(const Layout& layout);
  std::optional<std::string> host_conflict(const Evaluation& evaluation) const;

  Pricing& pricing_;
  const std::optional<Schedule>& order_;
  CandidateOptions options_;
  Workers workers_;
  Skeletons skeletons_;
  LayoutTree tree_;
  HeldBytes held_;
  FitAdvisor advisor_;
  WorkBounds work_;
  MovedActivations moved_;
  OwnLinksSteps own_links_;
  std::vector<Branch> families_;
  std::deque<Branch> cores_;  // which grow without a copy of all
  std::deque<Candidate> candidates_;
  Conflicts conflicts_;
  std::optional<std::int64_t> peak_limit_;
  SeenLayouts seen_;
  std::optional<std::size_t> nearest_miss_;
  std::int64_t evaluations_taken_ = 0;
  // By index:
  std::map<std::size_t, Evaluation> evaluations_;  ///< of those that are kShared
  std::map<std::size_t, Out> out_;
};

}}  // namespace plumb::planner
