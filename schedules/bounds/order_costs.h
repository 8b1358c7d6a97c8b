#pragma once
// The durations of a schedule's actions, as far as making an order and bounding its time need to know them.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Times of the messages between each stage and the next one of its lane, by direction.
struct HopTimes {
  std::vector<std::int64_t> activation;  ///< [stage] to the next stage
  std::vector<std::int64_t> gradient;    ///< [stage] from the next stage back

  friend bool operator==(const HopTimes&, const HopTimes&) = default;
};

/// Returns times that are the same in both directions.
HopTimes both_ways(const std::vector<std::int64_t>& times);

/// Durations of overlapped pairs of a forward and a backward of two stages of one rank, [the forward's stage * stages +
/// the backward's]. Those of stages on different ranks count for nothing.
struct PairTimes {
  std::vector<std::int64_t> input_grad;  ///< with I; empty where backwards are whole
  std::vector<std::int64_t> backward;    ///< with B

  friend bool operator==(const PairTimes&, const PairTimes&) = default;
};

/// Costs of each stage, in one unit of the caller's choice.
struct OrderCosts {
  std::vector<std::int64_t> forward;      ///< [stage]
  std::vector<std::int64_t> input_grad;   ///< [stage]
  std::vector<std::int64_t> weight_grad;  ///< [stage]; a whole backward takes both
  HopTimes hop;  ///< from an end to the earliest start of the neighbour, where the two lie on different ranks
  /// The part of the hop for which a message has its link to itself: the next one waits. Empty: any number of messages
  /// are under way at once.
  HopTimes hop_busy;
  PairTimes pairs = {};  ///< empty: no pair takes less than its two actions one after the other

  bool has_pairs() const { return !pairs.backward.empty(); }

  /// True if messages have their links to themselves for a while.
  bool has_busy_links() const { return !hop_busy.activation.empty(); }
};

/// Costs that are equal on every stage.
struct EqualCosts {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 0;
  std::int64_t hop = 0;
  std::int64_t hop_busy = 0;  ///< of the hop
};

/// Returns how long an action lasts by itself: F, B, I or W.
std::int64_t duration_of(const OrderCosts& costs, const Action& action);

/// Returns how long a forward and a backward (B or I) of one rank last as an overlapped pair.
std::int64_t pair_duration(const OrderCosts& costs, const Action& forward, const Action& backward);

/// Returns costs without pairs at which some order takes no longer than any order with pairs takes at the given ones: a
/// lower bound at these costs is one of orders with pairs.
///
/// Derivation. A backward takes what the shortest pair that it could be in takes beyond the forward. In an order with
/// pairs let each pair be its forward, from the pair's start on, with the backward right behind it: at these costs both end
/// no later than the pair did, their inputs were there at its start, and no more is held. Everything else begins when it
/// did.
OrderCosts costs_below_pairs(OrderCosts costs, const std::vector<StagePlace>& stages);

/// Returns the same costs for every one of the `stages`.
OrderCosts equal_costs(const EqualCosts& costs, int stages);

/// Returns the table's costs in picoseconds for the stages of a schedule. With `whole_backwards` those of a
/// backward count as input gradients alone. A hop takes the time of a message, for which it has the link of its
/// direction to itself, and its latency. Pairs are those of phases.h, if one takes less time than its two actions.
OrderCosts order_costs(const CostTable& table, const std::vector<StagePlace>& stages, bool whole_backwards = false);

}}  // namespace plumb::schedules
