#pragma once
// The layouts of a search, and what is known of the time of each. More is learned of a layout step by step: the work of
// its layers (search/work_bound.h), its priced stages (search/bounds.h), its step with links of its own, and its step on
// shared links, as `plumb simulate` tells it. No time that comes later is less than one that comes before.
//
//   Candidates candidates(pricing, request, order);
//   while (candidates[index].known < Known::kShared) candidates.learn_more(index);

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/enumerate.h"
#include "planner/search/fit_advisor.h"
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

struct Candidate {
  SimTime time{0};
  Known known = Known::kWork;
};

class Candidates {
 public:
  /// With an `order` of the user's own only layouts of its ranks, stages and micro-batches count; they have no bound, so
  /// that each is simulated. Throws as enumerate_layouts does, and SpecError if the request has another pp or v than the
  /// order.
  Candidates(Pricing& pricing, const LayoutRequest& request, const std::optional<Schedule>& order);

  std::size_t size() const { return candidates_.size(); }
  const Candidate& operator[](std::size_t index) const { return candidates_[index]; }
  const Layout& layout(std::size_t index) const { return found_.layouts[index]; }
  const std::vector<Rejection>& conflicts() const { return found_.conflicts; }
  /// True if no layout can exist, of whatever number of micro-batches.
  bool none_exists() const { return none_exists_; }

  /// Takes the next step for a candidate that is neither kShared nor kOut.
  void learn_more(std::size_t index);

  /// Return the evaluation of a candidate that is kShared.
  const Evaluation& evaluation(std::size_t index) const { return evaluations_.at(index); }
  Evaluation take_evaluation(std::size_t index) { return std::move(evaluations_.extract(index).mapped()); }

  /// Returns the shortfall of a candidate that is kOut; nothing where it is the hosts that cannot hold what is
  /// offloaded.
  std::optional<MemoryShortfall> shortfall(std::size_t index) const { return out_.at(index).shortfall; }
  /// Returns why a candidate is kOut, and the nearest change with which it fits.
  std::string why_out(std::size_t index);

 private:
  /// The facts of a schedule that bounds need, from few micro-batches.
  struct Skeleton {
    Schedule schedule;
    StageOrder order;
    BoundOrder bound;
  };
  struct Out {
    std::optional<MemoryShortfall> shortfall;
    std::string of_hosts;
  };

  static Skeleton skeleton_of(const Layout& layout);
  const Skeleton& skeleton(const Layout& layout);
  SimTime bound_by_stages(const Layout& layout);
  Evaluation on_shared_links(std::size_t index);
  std::optional<std::string> host_conflict(const Evaluation& evaluation) const;
  void take_out(std::size_t index, Out why);

  Pricing& pricing_;
  const std::optional<Schedule>& order_;
  Enumeration found_;
  bool none_exists_ = false;
  FitAdvisor advisor_;
  WorkBounds work_;
  std::map<std::tuple<std::string, int, int, int>, Skeleton> skeletons_;  ///< [schedule, pp, v, group]
  std::vector<Candidate> candidates_;
  // By index:
  std::map<std::size_t, PricedLayout> priced_;     ///< of those that are kPrivate
  std::map<std::size_t, Evaluation> evaluations_;  ///< of those that are kShared
  std::map<std::size_t, Out> out_;
};

/// Candidates by the least that is known of their time; of equals the one that was enumerated first, the simplest.
class CandidateQueue {
 public:
  explicit CandidateQueue(Candidates& candidates) : candidates_(candidates) {}

  /// Puts a candidate into the queue, unless it is kOut.
  void push(std::size_t index);
  bool empty() const { return waiting_.empty(); }
  std::size_t take_first();

 private:
  using Entry = std::pair<SimTime, std::size_t>;

  Candidates& candidates_;
  std::vector<Entry> waiting_;  // a heap, the least in front
};

}}  // namespace plumb::planner
