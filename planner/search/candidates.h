#pragma once
// The tree of a search (search/layout_tree.h), opened where the search looks, and what is known of the time of each of its
// layouts. More is learned of a layout step by step: the work of its layers (search/work_bound.h), its priced stages
// (search/bounds.h), its step with links of its own, and its step on shared links, as `plumb simulate` tells it. No time
// that comes later is less than one that comes before, and no layout below a family or a core takes less time than its
// bound.
//
// Steps are taken side by side on the machine's cores. What they answer depends on neither their number nor their pace.

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/fit_advisor.h"
#include "planner/search/layout_tree.h"
#include "planner/search/objective.h"
#include "planner/search/skeletons.h"
#include "planner/search/work_bound.h"
#include "planner/threads/workers.h"

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
  double value = 0;             ///< of the objective, as far as it is known
  double own_links_value = 0;   ///< the value where transfers have their links to themselves; 0: not known
  std::int64_t peak_bytes = 0;  ///< that its fullest rank holds, as far as it is known where peaks are limited
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
  bool complete = true;  ///< false: a core whose layouts cannot fit (search/memory_bound.h) is not opened
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
  /// True if no core that was opened has a layout, of whatever number of micro-batches.
  bool none_exists() const { return !one_exists_; }

  /// Returns how many cores were not opened because their layouts cannot fit.
  std::int64_t cores_too_large() const { return cores_too_large_; }
  /// From now on a core is not opened whose layouts all hold so much memory or more, and peaks are learned early.
  void limit_peak(std::int64_t bytes) { peak_limit_ = bytes; }

  /// Returns how many steps were taken with candidates.
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
  struct Opened {
    std::vector<Branch> cores;          ///< of a family
    std::vector<Candidate> candidates;  ///< of a core
    std::vector<Rejection> conflicts;
    bool exists = false;     ///< a layout of a core does
    bool too_large = false;  ///< a core is not opened
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
  bool cannot_fit(const Layout& core);
  Learned learn_more(const Candidate& candidate);
  Learned learn_step(const Candidate& candidate);
  LeastTimes bound_by_stages(const Layout& layout);
  Candidate bounded(Candidate candidate, Known known, const LeastTimes& least) const;
  Evaluation on_shared_links(const Layout& layout);
  std::optional<std::string> host_conflict(const Evaluation& evaluation) const;

  Pricing& pricing_;
  const std::optional<Schedule>& order_;
  CandidateOptions options_;
  Workers workers_;
  Skeletons skeletons_;
  LayoutTree tree_;
  FitAdvisor advisor_;
  WorkBounds work_;
  std::vector<Branch> families_;
  std::vector<Branch> cores_;
  std::vector<Candidate> candidates_;
  Conflicts conflicts_;
  std::optional<std::int64_t> peak_limit_;
  bool one_exists_ = false;
  std::int64_t cores_too_large_ = 0;
  std::int64_t evaluations_taken_ = 0;
  // By index:
  std::map<std::size_t, Evaluation> evaluations_;  ///< of those that are kShared
  std::map<std::size_t, Out> out_;
};

}}  // namespace plumb::planner
