#include "schedules/synthesis/listed_chain.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::array kPatience{0.0, 0.25, 0.5, 0.75, 0.95, 1.0};

/// The rule of one rank's list, as far as ranks differ.
struct ChainRule {
  int max_in_flight = 1;       ///< forwards ahead of input gradients, 1 or more
  double patience = 0;         ///< patience with gaps (ListRules)
  bool forward_first = false;  ///< true if of F and I that are both ready F goes first

  friend bool operator==(const ChainRule&, const ChainRule&) = default;
};

/// The effort that a search may still spend: actions listed, over all of its candidates. It is counted, not timed, so
/// that the same question has the same answer on every machine.
struct Effort {
  std::int64_t actions = 0;
  std::function<bool()> is_stopped;

  bool is_spent() const { return actions <= 0 || (is_stopped && is_stopped()); }
};

constexpr int kRegularCandidates = 900;  // over all degrees of patience

struct ChainOrder {
  std::vector<ChainRule> rules;  ///< [rank]
  std::vector<std::vector<Action>> orders;
  std::int64_t time = std::numeric_limits<std::int64_t>::max();
};

ListedOrder listed_below(std::int64_t most, const OrderQuestion& question, const std::vector<ChainRule>& rules) {
  ListRules lists;
  for (const ChainRule& rule : rules) {
    lists.forward_urgency.push_back(rule.forward_first ? 0 : 2);
    lists.backward_urgency.push_back(1);
    lists.max_in_flight.push_back(rule.max_in_flight);
    lists.patience.push_back(rule.patience);
  }
  return list_schedule_below(most, question, lists);
}

std::int64_t actions_of(const OrderQuestion& question, int microbatches) {
  const std::int64_t of_one = question.whole_backwards ? 2 : 3;
  return of_one * microbatches * question.ranks;
}

struct Attempt {
  bool improved = false;
  std::vector<LikeRules> alike;  ///< [rank] rules that list the same
};

/// Takes the order of `rules` in the place of `best` if its time is below `most`.
Attempt improve(ChainOrder& best, std::int64_t most, const OrderQuestion& question, const std::vector<ChainRule>& rules,
                Effort& effort) {
  effort.actions -= actions_of(question, question.frame.microbatches);
  ListedOrder listed = listed_below(most, question, rules);
  if (listed.is_below) best = {.rules = rules, .orders = std::move(listed.schedule.ranks), .time = listed.time};
  return {.improved = listed.is_below, .alike = std::move(listed.alike)};
}

/// Rules that were tried, and those that would have listed the same.
class TriedRules {
 public:
  void add(const std::vector<ChainRule>& rules, std::vector<LikeRules> alike) {
    tried_.push_back({rules, std::move(alike)});
  }

  /// Returns true if these rules list the same as some that were tried.
  bool include(const std::vector<ChainRule>& rules) const {
    return std::ranges::any_of(tried_, [&](const Tried& tried) {
      for (std::size_t r = 0; r < rules.size(); ++r) {
        if (!lists_the_same(rules[r], tried.rules[r], tried.alike[r])) return false;
      }
      return true;
    });
  }

 private:
  struct Tried {
    std::vector<ChainRule> rules;  ///< [rank]
    std::vector<LikeRules> alike;  ///< [rank]
  };

  static bool lists_the_same(const ChainRule& rule, const ChainRule& tried, const LikeRules& alike) {
    const auto within = [](auto value, auto least, auto most) { return value >= least && value <= most; };
    return within(rule.max_in_flight, alike.least_in_flight, alike.most_in_flight) &&
           (rule.patience == tried.patience || within(rule.patience, alike.least_patience, alike.most_patience)) &&
           (rule.forward_first == tried.forward_first || alike.any_urgency);
  }

  std::vector<Tried> tried_;
};

/// Returns the same rule for every rank but for the warm-up, which grows by `forwards_by_hop` for each rank behind.
std::vector<ChainRule> regular_rules(int ranks, double forwards_by_hop, double more, double patience,
                                     int forward_first_ranks) {
  std::vector<ChainRule> rules;
  for (int r = 0; r < ranks; ++r) {
    rules.push_back({.max_in_flight = 1 + static_cast<int>(forwards_by_hop * (ranks - 1 - r) + more),
                     .patience = patience,
                     .forward_first = r < forward_first_ranks});
  }
  return rules;
}

/// Returns the rules of a rank that differ from `rule` in one number.
std::vector<ChainRule> variations(const ChainRule& rule) {
  std::vector<ChainRule> varied;
  for (const int step : {-2, -1, 1, 2}) {
    varied.push_back(rule);
    varied.back().max_in_flight = std::max(1, rule.max_in_flight + step);
  }
  for (const double patience : kPatience) {
    varied.push_back(rule);
    varied.back().patience = patience;
  }
  varied.push_back(rule);
  varied.back().forward_first = !rule.forward_first;
  std::erase(varied, rule);
  return varied;
}

/// Searches the shortest order within the chain's memory.
class ChainSearch {
 public:
  /// The search ends where the time `goal` is reached.
  ChainSearch(const OrderQuestion& question, std::int64_t goal, Effort effort)
      : question_(question), goal_(goal), effort_(effort) {}

  /// Returns the best order that the effort finds. Orders whose ranks have the same rules, the best of each degree of
  /// patience, are varied rank by rank, the shortest first.
  ChainOrder run() {
    std::vector<ChainOrder> starts;
    for (std::size_t i = 0; i < kPatience.size() && !is_over(best_); ++i) {
      Effort share{effort_.actions / static_cast<std::int64_t>(kPatience.size() - i), effort_.is_stopped};
      effort_.actions -= share.actions;
      ChainOrder regular = best_regular(kPatience[i], share);
      effort_.actions += share.actions;
      if (!regular.rules.empty()) starts.push_back(std::move(regular));
    }
    std::ranges::stable_sort(starts, {}, &ChainOrder::time);
    for (ChainOrder& start : starts) {
      const bool is_near = static_cast<double>(start.time) <= kNear * static_cast<double>(best_.time);
      if (is_near && !is_over(best_)) keep_better(varied(std::move(start)));
    }
    return std::move(best_);
  }

 private:
  static constexpr double kNear = 1.01;  // of the authors' settings none is won from a start that is further off

  /// Returns true if the order of these rules is better than `best`, and then takes it in its place.
  bool attempt(ChainOrder& best, const std::vector<ChainRule>& rules, Effort& effort) {
    if (tried_.include(rules)) return false;
    Attempt attempt = improve(best, best.time, question_, rules, effort);
    tried_.add(rules, std::move(attempt.alike));
    return attempt.improved;
  }

  bool is_over(const ChainOrder& best) const { return best.time <= goal_; }

  void keep_better(const ChainOrder& other) {
    if (other.time < best_.time) best_ = other;
  }

  /// Returns the best order of that patience whose ranks have the same rules; without rules where all list what earlier
  /// ones did.
  ChainOrder best_regular(double patience, Effort& effort) {
    const int p = question_.ranks;
    ChainOrder best;
    for (const int forward_first_ranks : {0, p / 2, p}) {
      for (const double forwards_by_hop : {1.0, 1.25, 1.5, 1.625, 1.75, 1.875, 2.0, 2.125, 2.25, 2.5}) {
        for (const double more : {0.0, 0.5, 1.0, 1.5, 2.75}) {
          if (effort.is_spent() || is_over(best)) continue;
          attempt(best, regular_rules(p, forwards_by_hop, more, patience, forward_first_ranks), effort);
        }
      }
    }
    keep_better(best);
    return best;
  }

  /// Varies the rule of one rank after the other until no rank's makes the order better.
  ChainOrder varied(ChainOrder best) {
    const auto p = static_cast<std::size_t>(question_.ranks);
    std::size_t in_vain = 0;  // ranks since the last improvement
    for (std::size_t r = 0; in_vain < p && !is_over(best); r = (r + 1) % p) {
      ++in_vain;
      for (const ChainRule& rule : variations(best.rules[r])) {
        std::vector<ChainRule> rules = best.rules;
        rules[r] = rule;
        if (effort_.is_spent()) return best;
        if (attempt(best, rules, effort_)) in_vain = 0;
      }
    }
    return best;
  }

  const OrderQuestion& question_;
  std::int64_t goal_;
  Effort effort_;
  TriedRules tried_;
  ChainOrder best_;
};

/// Returns an order that is no longer and needs less memory: rank by rank the limit goes down in eighths of an
/// activation as far as the rest of the chain loses no time by it. The limits are left in `question`.
ChainOrder leaner(OrderQuestion& question, ChainOrder best, Effort& effort) {
  std::vector<std::int64_t>& max_bytes = question.memory.max_bytes;
  for (std::size_t r = 0; r < max_bytes.size() && !effort.is_spent(); ++r) {
    const std::int64_t activation = question.memory.activation_bytes[r];
    const std::int64_t step = std::max<std::int64_t>(1, activation / 8);
    max_bytes[r] = peak_bytes(question.memory, best.orders[r]);
    while (max_bytes[r] - step >= activation && !effort.is_spent()) {
      max_bytes[r] -= step;
      if (improve(best, best.time + 1, question, std::vector(best.rules), effort).improved) continue;
      max_bytes[r] += step;
      break;
    }
  }
  return best;
}

/// Returns the number of micro-batches that rules are sought with: all, unless half of the effort would not do for the
/// regular candidates, and never fewer than four a rank, among which the middle of the order has come to repeat.
int sought_microbatches(const OrderQuestion& question, std::int64_t most_actions) {
  const std::int64_t each = kRegularCandidates * actions_of(question, 1);
  const std::int64_t most = std::max<std::int64_t>(std::int64_t{4} * question.ranks, most_actions / 2 / each);
  return static_cast<int>(std::min<std::int64_t>(question.frame.microbatches, most));
}

void check(const OrderQuestion& question) {
  const auto p = static_cast<std::size_t>(question.ranks);
  const OrderCosts& costs = question.costs;
  const ActivationMemory& memory = question.memory;
  if (question.frame.stages != loop_placement(question.ranks, question.ranks)) {
    throw ScheduleError(fmt::format("{} has to be a chain of one stage a rank", question.frame.name));
  }
  for (const std::vector<std::int64_t>* list :
       {&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.hop.activation, &costs.hop.gradient,
        &memory.activation_bytes, &memory.released_at_input_grad_bytes, &memory.max_bytes}) {
    if (p > 0 && list->size() == p) continue;
    throw ScheduleError(fmt::format("{} needs the costs and the memory of every rank: give lists of one entry a rank",
                                    question.frame.name));
  }
  for (std::size_t r = 0; r < p; ++r) {
    if (memory.max_bytes[r] >= memory.activation_bytes[r]) continue;
    throw ScheduleError(fmt::format("rank {} may hold {} bytes, less than one activation of {}: give it more", r,
                                    memory.max_bytes[r], memory.activation_bytes[r]));
  }
}

}  // namespace

ListedChain list_chain(const OrderQuestion& question, std::int64_t goal, const ChainEffort& given) {
  check(question);
  OrderQuestion sought = question;
  sought.frame.microbatches = sought_microbatches(question, given.most_actions);
  const bool is_whole = sought.frame.microbatches == question.frame.microbatches;
  const Effort all{given.most_actions, given.is_stopped};
  ChainOrder best = ChainSearch(sought, is_whole ? goal : best_bound(sought).time, all).run();
  if (best.rules.empty()) return {.schedule = question.frame};
  Effort effort{given.most_actions / 2, given.is_stopped};
  best = leaner(sought, std::move(best), effort);
  if (!is_whole) {
    OrderQuestion lean = question;
    lean.memory.max_bytes = sought.memory.max_bytes;
    const std::vector<ChainRule> rules = best.rules;
    improve(best, std::numeric_limits<std::int64_t>::max(), lean, rules, effort);
    improve(best, best.time, question, rules, effort);
  }
  Schedule schedule = question.frame;
  schedule.ranks = std::move(best.orders);
  return {.schedule = std::move(schedule), .time = best.time};
}

}}  // namespace plumb::schedules
