#pragma once
// The results that stages hand over to shards of a model part and take from them (schedules/dependencies/shards.h), in
// the dry run. No message carries them: whoever needs one waits for the end of the action that makes it.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/dependencies/shards.h"
#include "schedules/schedule.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/compile/turns.h"
#include "simulator/compile/units.h"

namespace plumb { inline namespace simulator {

class ShardResults {
 public:
  /// The arguments must outlive it.
  ShardResults(const Schedule& schedule, const StageNeighbors& neighbors, const Shards& shards, const Units& units,
               Turns& turns);

  /// Returns a result from another rank that the action needs and that is not there yet, or null.
  const Register* missing_result(const Action& action) const;

  /// Appends the registers of the results from other ranks that the action has to wait for.
  void take_inputs(const Action& action, std::vector<Register>& inputs) const;

  /// True if other stages take the result of the action.
  bool is_taken(const Action& action) const;

  /// Notes that the action's end is in `end`, and wakes the ranks that wait for it.
  void deliver(const Action& action, Register end);

 private:
  /// The results of one unit: of its F, and of its I or B.
  struct Unit {
    std::array<Register, 2> result{};  ///< zero until it is there
    std::array<bool, 2> is_listed{};   ///< a result that nobody makes holds nobody up
  };

  /// Calls visit(result) for each result of another rank that the action needs.
  template <class Visit>
  void for_each_result(const Action& action, const Visit& visit) const;

  const Schedule& schedule_;
  const StageNeighbors& neighbors_;
  const Shards& shards_;
  const Units& units_;
  Turns& turns_;
  std::vector<Unit> results_;  ///< [unit]; empty without shards
};

}}  // namespace plumb::simulator
