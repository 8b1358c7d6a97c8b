#include "schedules/search/search_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedules/bounds/rank_alone.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/exact_order.h"
#include "schedules/search/order_program.h"
#include "schedules/synthesis/fit_to_costs.h"
#include "schedules/synthesis/listed_chain.h"
#include "schedules/synthesis/listed_placement.h"
#include "schedules/synthesis/local_search.h"
#include "schedules/synthesis/paired_order.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr int kLargestExact = 48;                // more slices on all stages are hardly ever settled
constexpr double kTimedActionsAComparison = 25;  // they take as long as one of partial orders of a rank alone
constexpr double kTimedActionsANode = 250;       // they take as long as a partial order of the exhaustive search

/// True for chains that listed_chain.h makes orders for.
bool is_chain(const OrderQuestion& question) {
  return question.slices == 1 && question.frame.stages == loop_placement(question.ranks, question.ranks);
}

/// Returns the question with memory for all micro-batches where it has no limit.
OrderQuestion with_limits(OrderQuestion question) {
  if (question.memory.activation_bytes.empty()) question.memory = counted_activations(question, 0);
  if (!question.memory.max_bytes.empty()) return question;
  question.memory.max_bytes.assign(static_cast<std::size_t>(question.ranks), 0);
  for (std::size_t s = 0; s < question.frame.stages.size(); ++s) {
    question.memory.max_bytes[question.frame.stages[s].rank] +=
        question.memory.activation_bytes[s] * question.frame.microbatches * question.slices;
  }
  return question;
}

class ScheduleSearch {
 public:
  ScheduleSearch(const OrderQuestion& question, const SearchEffort& effort)
      : question_(with_limits(question)), effort_(effort), bound_(best_bound(question)) {}

  std::optional<FoundSchedule> run(const std::vector<Schedule>& starts) {
    for (const Schedule& start : starts) consider(start);
    for (Schedule& order : catalogue_orders(question_)) consider(std::move(order));
    consider(serial_order(question_));
    if (orders_.empty()) return std::nullopt;
    if (is_chain(question_)) list();
    if (!is_chain(question_)) list_by_caps();
    bound_by_ranks();
    if (is_searchable_exactly(question_) && size() <= kLargestExact) settle();
    fit();
    solve();
    Schedule schedule = std::move(best_.schedule);
    schedule.name = question_.frame.name;
    return FoundSchedule{.schedule = std::move(schedule), .time = best_.time, .bound = bound_};
  }

 private:
  bool is_stopped() const { return effort_.is_stopped && effort_.is_stopped(); }
  bool is_over() const { return best_.time <= bound_.time || is_stopped(); }

  /// Returns how many slices of micro-batches pass all of the stages.
  int size() const {
    return static_cast<int>(question_.frame.stages.size()) * question_.frame.microbatches * question_.slices;
  }

  void keep_better(const Schedule& order, std::int64_t time) {
    if (time >= best_.time) return;
    best_ = {.schedule = order, .time = time};
    if (effort_.progress) effort_.progress(best_.time, bound_.time);
  }

  /// Adds an order, and it with all pairs that make it shorter.
  void consider(Schedule order) {
    if (!fits_memory(question_, order)) return;
    keep_better(order, order_time(order, question_));
    if (question_.costs.has_pairs()) {
      Schedule paired = paired_order(order, question_);
      keep_better(paired, order_time(paired, question_));
      orders_.push_back(std::move(paired));
    }
    orders_.push_back(std::move(order));
  }

  /// Adds the list schedules of a chain. One that is made for the span may have the better makespan as well.
  void list() {
    std::vector<Objective> objectives{question_.objective};
    if (question_.objective == Objective::kMakespan) objectives.push_back(Objective::kSpan);
    for (const Objective objective : objectives) {
      if (is_over()) return;
      OrderQuestion listed = question_;
      listed.objective = objective;
      Schedule order = list_chain(listed, best_bound(listed).time, {.is_stopped = effort_.is_stopped}).schedule;
      if (!order.ranks.empty()) consider(std::move(order));
    }
  }

  /// Adds the quickest few list schedules of any other placement.
  void list_by_caps() {
    if (is_over()) return;
    constexpr std::size_t kMostKept = 8;
    std::vector<FittedOrder> listed;
    for (Schedule& order : listed_orders(question_)) {
      const std::int64_t time = order_time(order, question_);
      listed.push_back({.schedule = std::move(order), .time = time});
    }
    std::ranges::stable_sort(listed, {}, &FittedOrder::time);
    if (listed.size() > kMostKept) listed.resize(kMostKept);
    for (FittedOrder& order : listed) consider(std::move(order.schedule));
  }

  /// Raises the bound to that of a rank alone, if that takes no longer than the effort.
  void bound_by_ranks() {
    const auto comparisons = static_cast<std::int64_t>(effort_.timed_actions / kTimedActionsAComparison);
    for (int r = question_.ranks; r-- > 0 && !is_over();) {
      LowerBound alone = rank_alone_bound(question_, r, best_.time, comparisons / question_.ranks);
      if (alone.time > bound_.time) bound_ = std::move(alone);
    }
  }

  /// Looks at all orders of few stages and micro-batches, if that takes no longer than the effort.
  void settle() {
    if (is_over()) return;
    const auto nodes = static_cast<std::int64_t>(effort_.timed_actions / kTimedActionsANode);
    const ExactOrder exact =
        exact_order(question_, best_.time, {.most_nodes = nodes, .is_stopped = effort_.is_stopped});
    if (!exact.schedule.ranks.empty()) keep_better(exact.schedule, exact.time);
    if (exact.is_complete) bound_ = exhaustive_bound(best_.time);
  }

  /// Improves the best orders by local search.
  void fit() {
    if (is_over()) return;
    orders_.push_back(best_.schedule);
    const FittedOrder fitted =
        fit_to_costs(orders_, question_,
                     {.timed_actions = effort_.timed_actions, .goal = bound_.time, .is_stopped = effort_.is_stopped});
    keep_better(fitted.schedule, fitted.time);
  }

  /// Asks the solver for the orders that are shorter.
  void solve() {
    if (!effort_.solver || is_over() || !is_programmable(question_)) return;
    const SolvedOrder solved = solved_order(question_, best_.time, effort_.solver);
    if (!solved.schedule.ranks.empty()) keep_better(solved.schedule, solved.time);
    if (solved.bound > bound_.time) bound_ = program_bound(std::min(solved.bound, best_.time), solved.solver);
  }

  OrderQuestion question_;
  const SearchEffort& effort_;
  LowerBound bound_;
  std::vector<Schedule> orders_;  ///< to begin with
  FittedOrder best_{.time = std::numeric_limits<std::int64_t>::max()};
};

}  // namespace

LowerBound exhaustive_bound(std::int64_t time) {
  return {.time = time,
          .reason = "an exhaustive search",
          .terms = {
              {.what = "which no order takes less than, as far as micro-batches ascend on every stage", .time = time}}};
}

bool is_of_ascending_orders(const LowerBound& bound) {
  return is_program_bound(bound) || bound.reason == exhaustive_bound(bound.time).reason;
}

std::optional<FoundSchedule> search_schedule(const OrderQuestion& question, const SearchEffort& effort,
                                             const std::vector<Schedule>& starts) {
  return ScheduleSearch(question, effort).run(starts);
}

}}  // namespace plumb::schedules
