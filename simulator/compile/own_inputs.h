#pragma once
// The inputs that actions take from their own rank. Issue is in order, so an input listed ahead is there and takes no
// register. An input that is listed behind its user is a deadlock. An input that is not listed at all holds nobody up
// (validate reports it).

#include <cstdint>
#include <vector>

#include "schedules/dependencies/shards.h"
#include "schedules/schedule.h"
#include "simulator/compile/units.h"

namespace plumb { inline namespace simulator {

class OwnInputs {
 public:
  /// The arguments must outlive it.
  OwnInputs(const Schedule& schedule, const StageNeighbors& neighbors, const Shards& shards, const Units& units,
            Sends sends);

  /// Notes actions that run now, as one where they are a pair. Throws the ScheduleError of a deadlock if an action of
  /// the rank has needed one of them already.
  void run(const Action* first, int count);

  /// True if an R of the action's micro-batch has run.
  bool recomputed(const Action& action) const;

 private:
  /// The state of one unit, in bits of operations.
  struct Known {
    std::uint16_t done = 0;    ///< operations that have run
    std::uint16_t needed = 0;  ///< operations that were needed before they ran
  };

  void finish(const Action& action);
  void require(const Action& action);

  const Schedule& schedule_;
  const StageNeighbors& neighbors_;
  const Shards& shards_;
  const Units& units_;
  Sends sends_;
  std::vector<Known> known_;  ///< [unit]
};

}}  // namespace plumb::simulator
