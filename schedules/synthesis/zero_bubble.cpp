#include "schedules/synthesis/zero_bubble.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

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

  bool is_spent() const { return actions <= 0; }
};

/// A hundred million take 10 to 20 s on one core. The settings of the zero-bubble papers (32 ranks, 256 micro-batches)
/// need less.
constexpr std::int64_t kMostActions = 100'000'000;
constexpr int kRegularCandidates = 900;  // over all degrees of patience

struct ZeroBubbleOrder {
  std::vector<ChainRule> rules;  ///< [rank]
  std::vector<std::vector<Action>> orders;
  SimTime span = SimTime::max();
};

ListedOrder listed_below(SimTime most, const ChainCosts& costs, const std::vector<ChainRule>& rules) {
  const auto p = static_cast<int>(rules.size());
  const auto counts = [](const std::vector<SimTime>& times) {
    std::vector<std::int64_t> picoseconds;
    for (const SimTime time : times) picoseconds.push_back(time.count());
    return picoseconds;
  };
  const OrderCosts taken{.forward = counts(costs.forward),
                         .input_grad = counts(costs.input_grad),
                         .weight_grad = counts(costs.weight_grad),
                         .hop = costs.hop.count()};
  ListRules lists{.whole_backwards = false,
                  .max_bytes = costs.max_bytes,
                  .activation_bytes = costs.activation_bytes,
                  .released_at_input_grad_bytes = costs.released_at_input_grad_bytes};
  for (const ChainRule& rule : rules) {
    lists.forward_urgency.push_back(rule.forward_first ? 0 : 2);
    lists.backward_urgency.push_back(1);
    lists.max_in_flight.push_back(rule.max_in_flight);
    lists.patience.push_back(rule.patience);
  }
  const Schedule frame{.name = "zb-auto", .microbatches = costs.microbatches, .stages = loop_placement(p, p)};
  return list_schedule_below(most.count(), frame, p, taken, lists);
}

std::int64_t actions_of(const ChainCosts& costs, int microbatches) {
  return std::int64_t{3} * microbatches * static_cast<std::int64_t>(costs.forward.size());
}

struct Attempt {
  bool improved = false;
  std::vector<LikeRules> alike;  ///< [rank] rules that list the same
};

/// Takes the order of `rules` in the place of `best` if its span is below `most`.
Attempt improve(ZeroBubbleOrder& best, SimTime most, const ChainCosts& costs, const std::vector<ChainRule>& rules,
                Effort& effort) {
  effort.actions -= actions_of(costs, costs.microbatches);
  ListedOrder listed = listed_below(most, costs, rules);
  if (listed.is_below) {
    best = {.rules = rules, .orders = std::move(listed.schedule.ranks), .span = SimTime{listed.span}};
  }
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
class ZeroBubbleSearch {
 public:
  /// `bound` is the chain's chain_span_bound(): the search ends where it is reached.
  ZeroBubbleSearch(const ChainCosts& costs, SimTime bound) : costs_(costs), bound_(bound) {}

  /// Returns the best order that the effort finds. Orders whose ranks have the same rules, the best of each degree of
  /// patience, are varied rank by rank, the shortest first.
  ZeroBubbleOrder run() {
    std::vector<ZeroBubbleOrder> starts;
    for (std::size_t i = 0; i < kPatience.size() && !is_over(best_); ++i) {
      Effort share{effort_.actions / static_cast<std::int64_t>(kPatience.size() - i)};
      effort_.actions -= share.actions;
      ZeroBubbleOrder regular = best_regular(kPatience[i], share);
      effort_.actions += share.actions;
      if (!regular.rules.empty()) starts.push_back(std::move(regular));
    }
    std::ranges::stable_sort(starts, {}, &ZeroBubbleOrder::span);
    for (ZeroBubbleOrder& start : starts) {
      const bool is_near = seconds(start.span) <= kNear * seconds(best_.span);
      if (is_near && !is_over(best_)) keep_better(varied(std::move(start)));
    }
    return std::move(best_);
  }

 private:
  static constexpr double kNear = 1.01;  // of the authors' settings none is won from a start that is further off

  /// Returns true if the order of these rules is better than `best`, and then takes it in its place.
  bool attempt(ZeroBubbleOrder& best, const std::vector<ChainRule>& rules, Effort& effort) {
    if (tried_.include(rules)) return false;
    Attempt attempt = improve(best, best.span, costs_, rules, effort);
    tried_.add(rules, std::move(attempt.alike));
    return attempt.improved;
  }

  bool is_over(const ZeroBubbleOrder& best) const { return best.span <= bound_; }

  void keep_better(const ZeroBubbleOrder& other) {
    if (other.span < best_.span) best_ = other;
  }

  /// Returns the best order of that patience whose ranks have the same rules; without rules where all list what earlier
  /// ones did.
  ZeroBubbleOrder best_regular(double patience, Effort& effort) {
    const int p = static_cast<int>(costs_.forward.size());
    ZeroBubbleOrder best;
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
  ZeroBubbleOrder varied(ZeroBubbleOrder best) {
    const std::size_t p = costs_.forward.size();
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

  const ChainCosts& costs_;
  SimTime bound_;
  Effort effort_{kMostActions};
  TriedRules tried_;
  ZeroBubbleOrder best_;
};

/// Returns the most bytes that a rank holds at once.
std::int64_t peak_bytes(const ChainCosts& costs, const std::vector<Action>& actions) {
  std::int64_t held = 0, peak = 0;
  for (const Action& action : actions) {
    if (action.op == Op::kForward) held += costs.activation_bytes;
    if (action.op == Op::kInputGrad) held -= costs.released_at_input_grad_bytes;
    if (action.op == Op::kWeightGrad) held -= costs.activation_bytes - costs.released_at_input_grad_bytes;
    peak = std::max(peak, held);
  }
  return peak;
}

/// Returns an order that is no longer and needs less memory: rank by rank the limit goes down in eighths of an
/// activation as far as the rest of the chain loses no time by it. The limits are left in `costs`.
ZeroBubbleOrder leaner(ChainCosts& costs, ZeroBubbleOrder best, Effort& effort) {
  const std::int64_t step = std::max<std::int64_t>(1, costs.activation_bytes / 8);
  for (std::size_t r = 0; r < best.rules.size() && !effort.is_spent(); ++r) {
    costs.max_bytes[r] = peak_bytes(costs, best.orders[r]);
    while (costs.max_bytes[r] - step >= costs.activation_bytes && !effort.is_spent()) {
      costs.max_bytes[r] -= step;
      if (improve(best, best.span + SimTime{1}, costs, std::vector(best.rules), effort).improved) continue;
      costs.max_bytes[r] += step;
      break;
    }
  }
  return best;
}

/// Returns the number of micro-batches that rules are sought with: all, unless half of the effort would not do for the
/// regular candidates, and never fewer than four a rank, among which the middle of the order has come to repeat.
int sought_microbatches(const ChainCosts& costs) {
  const std::int64_t each = kRegularCandidates * actions_of(costs, 1);
  const std::int64_t most = std::max<std::int64_t>(4 * std::ssize(costs.forward), kMostActions / 2 / each);
  return static_cast<int>(std::min<std::int64_t>(costs.microbatches, most));
}

void check(const ChainCosts& costs) {
  const std::size_t p = costs.forward.size();
  if (p == 0 || costs.input_grad.size() != p || costs.weight_grad.size() != p || costs.max_bytes.size() != p) {
    throw ScheduleError("zb-auto needs the costs and the memory of every rank: give lists of one entry a rank");
  }
  const auto tight = std::ranges::find_if(costs.max_bytes, [&](auto bytes) { return bytes < costs.activation_bytes; });
  if (tight != costs.max_bytes.end()) {
    throw ScheduleError(fmt::format("rank {} may hold {} bytes, less than one activation of {}: give it more",
                                    tight - costs.max_bytes.begin(), *tight, costs.activation_bytes));
  }
}

}  // namespace

Synthesis synthesize_zero_bubble(const ChainCosts& costs) {
  check(costs);
  const int p = static_cast<int>(costs.forward.size());
  const SimTime bound = chain_span_bound(costs);
  ChainCosts sought = costs;
  sought.microbatches = sought_microbatches(costs);
  const bool is_whole = sought.microbatches == costs.microbatches;
  ZeroBubbleOrder best = ZeroBubbleSearch(sought, is_whole ? bound : chain_span_bound(sought)).run();
  Effort effort{kMostActions / 2};
  best = leaner(sought, std::move(best), effort);
  if (!is_whole) {
    ChainCosts lean = costs;
    lean.max_bytes = sought.max_bytes;
    const std::vector<ChainRule> rules = best.rules;
    improve(best, SimTime::max(), lean, rules, effort);
    improve(best, best.span, costs, rules, effort);
  }
  return {.schedule = {.name = "zb-auto",
                       .microbatches = costs.microbatches,
                       .stages = loop_placement(p, p),
                       .ranks = std::move(best.orders)},
          .span = best.span,
          .bound = bound};
}

}}  // namespace plumb::schedules
