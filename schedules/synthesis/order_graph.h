#pragma once
// The actions as a search over orders must know them: which action needs which, and how long each takes. Actions are
// numbers. All this is looked up once; only the order on each rank changes.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// [rank] the numbers of its actions, in the order in which they run.
using RankOrders = std::vector<std::vector<std::int32_t>>;

/// [action] 1 for a forward that forms an overlapped pair with the action behind it, if that is a backward.
using Joined = std::vector<std::uint8_t>;

struct OrderGraph {
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int64_t kUnknownEnd = -1;

  struct Input {
    std::int32_t id = kNone;
    std::int64_t delay = 0;  ///< from the input's end to the earliest start
  };

  /// A message that an action sends to another rank, through a channel of those two ranks and its direction.
  struct Message {
    std::int32_t channel = kNone;  ///< kNone: it sends none, or it does not matter how many are under way
    std::int64_t busy = 0;         ///< how long it has the channel to itself
  };

  /// `schedule` is an order for the question's frame. Throws ScheduleError if it has other actions than F, B,
  /// I and W, or other pairs than those of a forward with a backward behind it.
  OrderGraph(const Schedule& schedule, const OrderQuestion& question);

  /// True for a forward and a backward.
  bool can_pair(std::int32_t first, std::int32_t second) const;

  /// Returns how much less time a forward and a backward take as a pair; 0 for other actions.
  std::int64_t pair_gain(std::int32_t first, std::int32_t second) const;

  OrderCosts costs;
  std::vector<Action> actions;  ///< none of them flagged as overlapping
  std::vector<int> ranks;
  std::vector<std::int64_t> durations;
  std::vector<std::int64_t> bytes_added;  ///< to its rank: by F at its start, by the others at their end
  /// the input of its own slice and stage (a backward's forward, a W's I), the neighbour's, and that of the slice which
  /// its stage runs first
  std::vector<std::array<Input, 3>> inputs;
  std::vector<int> readers;             ///< the other rank that waits for it, or kNone
  std::vector<Message> messages;        ///< [action]
  int channels = 0;                     ///< 0: no message waits for another
  RankOrders listed;                    ///< the schedule's own order
  Joined joined;                        ///< and its pairs
  bool may_pair = false;                ///< it has pairs, or its costs have
  std::vector<std::int64_t> max_bytes;  ///< [rank]; empty: any number
  Objective objective = Objective::kSpan;
};

/// Returns the schedule with its actions in another order, and with those of the pairs that take less time than their
/// two actions.
Schedule in_order(Schedule schedule, const OrderGraph& graph, const RankOrders& orders, const Joined& joined = {});

}}  // namespace plumb::schedules
