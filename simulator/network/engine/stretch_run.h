#pragma once
// Runs actions with collectives inside them: stretch by stretch, in two lanes (simulator/network/engine/stretches.h).

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/network/engine/collective_meetings.h"
#include "simulator/network/engine/event_draws.h"
#include "simulator/network/engine/event_numbers.h"
#include "simulator/network/engine/event_times.h"
#include "simulator/network/engine/rank_compute.h"
#include "simulator/network/flow/flows.h"

namespace plumb { inline namespace simulator {

/// The objects that the event engine and its stretches work with, which must outlive them.
struct EventParts {
  const EventProgram& program;
  const NetworkSpec& network;
  EventQueue& events;
  Flows& flows;
  RankCompute& compute;
  CollectiveMeetings& meetings;
  EventNumbering numbers;
  DerivativeTape* tape = nullptr;                   ///< null for no derivatives
  const EventDraws* draws = nullptr;                ///< null for no noise
  std::vector<Meeting>* meetings_inside = nullptr;  ///< null if meetings are not recorded
};

/// Returns the moment that comes later by the time of that number, which may have a factor.
inline DerivativeTape::Node moment_after(DerivativeTape* tape, std::int32_t number) {
  return tape == nullptr ? DerivativeTape::kConstant
                         : tape->add({DerivativeTape::of(tape->now, 1), DerivativeTape::by(number, 1)});
}

class StretchRun {
 public:
  /// `ended` is called with an instance whose action is over; `complete` is called with one inside which the buckets at
  /// that offset are complete.
  StretchRun(const EventParts& parts, int ranks, std::function<void(std::int32_t)> ended,
             std::function<void(std::int32_t, SimTime)> complete);

  void begin(std::int32_t instance, std::int32_t plan, SimTime now);

  /// Must be called when the instance's computing is over.
  void end_compute(std::int32_t instance, SimTime now) { finish(instance, LaneKind::kBlocking, now); }

  /// Must be called when a collective inside an action is over, for all of its group.
  void end_collective(std::int32_t instance, LaneKind lane, SimTime now);

 private:
  struct Progress {
    std::int32_t phase = 0;
    std::int32_t last_phase = 0;  ///< the phase behind the last one
    int open_lanes = 0;
    std::array<std::int32_t, kLanes> at{};  ///< [lane] stretch under way
    std::array<SimTime, kLanes> came{};     ///< [lane] when it came to its collective, if meetings are recorded
  };

  Progress& progress_of(std::int32_t instance);
  std::int32_t instance_of(int replica, std::int32_t instance) const;
  std::int32_t inner_group(std::int32_t instance, const Stretch& stretch) const;
  void begin_phase(std::int32_t instance, Progress& progress, SimTime now);
  void go_on(std::int32_t instance, Progress& progress, LaneKind lane, SimTime now);
  void begin_stretch(std::int32_t instance, LaneKind lane, std::int32_t number, SimTime now);
  void record_meeting(std::int32_t group, LaneKind lane, std::int32_t last, SimTime now);
  void begin_collective(std::int32_t instance, LaneKind lane, std::int32_t number, SimTime now);
  void finish(std::int32_t instance, LaneKind lane, SimTime now);

  EventParts parts_;
  int ranks_;
  std::int32_t instances_;
  std::function<void(std::int32_t)> ended_;
  std::function<void(std::int32_t, SimTime)> complete_;
  std::vector<Progress> progress_;  ///< [replica * ranks + rank]
};

}}  // namespace plumb::simulator
