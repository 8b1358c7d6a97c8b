#pragma once
// Puts together the seconds of the makespan by the cost that they grow with. The answers of
// simulator/path/sensitivity.h and of network/network_sensitivity.h are made so.

#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/path/sensitivity.h"

namespace plumb { inline namespace simulator {

class SensitivitySums {
 public:
  /// The arguments must outlive it.
  SensitivitySums(const Schedule& lowered, const CostTable& costs);

  /// Adds a compute action, OPTIMIZER_STEP or collective by itself, or the two actions of an overlapped pair. It is
  /// divided as the segments that decide how long they last (schedules/phases.h).
  void add(std::span<const Action> actions, Seconds seconds);
  void add(const Action& action, Seconds seconds) { add({&action, 1}, seconds); }
  void add_computing(int stage, Seconds seconds) { result_.compute_by_stage[stage] += seconds; }
  /// Adds a collective inside an action.
  void add_inner(Group group, CollectiveKind kind, Seconds seconds);
  /// Adds a message, by its time on the channel and its latency.
  void add_message(const Action& send, Seconds occupied, Seconds latency);
  void add_moves(Seconds seconds) { result_.moves += seconds; }
  /// Adds seconds of a shared link, by the name of its kind.
  void add_capacity(const std::string& kind, Seconds seconds);

  Sensitivity finish();

 private:
  const Schedule& schedule_;
  const CostTable& costs_;
  StageNeighbors neighbors_;
  Sensitivity result_;
  std::array<std::array<Seconds, kPricedCollectiveCount>, kGroupCount> collectives_{};
  std::map<std::pair<int, int>, LinkSensitivity> links_;
  std::map<std::string, Seconds> capacities_;
};

}}  // namespace plumb::simulator
