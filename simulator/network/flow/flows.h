#pragma once
// Flows in flight over shared links: how fast each runs now, and which ends next.
//
//   Flows flows({50e9}, {{.uses = {{0, 1}}}});                  // one link, one route over it
//   flows.start({.id = 7, .route = 0, .cap_bytes_per_second = 50e9, .alone = SimTime{320'000'000}}, SimTime{0});
//   flows.next_end() -> 320 us;  flows.take_ended() -> {7}
//
// A flow's work is the time that it takes alone; with a rate of x it does x / cap of it in unit time. Rates are max-min
// fair (simulator/network/flow/max_min.h) and change only when a flow starts or ends, for the flows that are linked to
// it by shared links: only their component is computed anew, and a flow's remaining work is brought up to date only
// when its rate changes. Each component keeps its first end in a heap whose outdated entries are known by their
// version.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/time.h"
#include "simulator/network/flow/flow_derivatives.h"
#include "simulator/network/flow/max_min.h"

namespace plumb { inline namespace simulator {

/// The way of a flow.
struct Route {
  std::vector<LinkUse> uses;  ///< each link once
  double weight = 1;          ///< weight of its claim where it shares: each of several parallel rings counts

  friend bool operator==(const Route&, const Route&) = default;
};

struct FlowStart {
  std::int32_t id = 0;     ///< the caller's
  std::int32_t route = 0;  ///< number of the route
  double cap_bytes_per_second = 0;
  SimTime alone{0};  ///< duration where nothing holds it back; above 0
  // For derivatives, these are the numbers of the two (simulator/network/engine/event_numbers.h).
  std::int32_t alone_number = 0;
  std::int32_t cap_number = 0;
};

class Flows {
 public:
  Flows(std::vector<double> capacities, std::vector<Route> routes);

  /// Puts each end on the tape from now on; must come before the first start. `capacity` is the number of the first
  /// link's.
  void record(DerivativeTape& tape, std::int32_t capacity);

  /// Starts a flow. `now` must not be before any earlier start or end. Flows that start together share from the same
  /// moment.
  void start(const FlowStart& flow, SimTime now);

  /// Returns when the next flow ends, or nothing if none is in flight. A flow alone ends exactly `alone` after its
  /// start; others end at the first picosecond at which their work is done.
  std::optional<SimTime> next_end();

  /// Takes the flows that end at next_end(), in the order in which they started within each component; the component
  /// whose flow started first comes before the others. There must be one.
  const std::vector<std::int32_t>& take_ended();

  /// Returns the moments on the tape of the flows just taken.
  const std::vector<DerivativeTape::Node>& ended_nodes() const { return ended_nodes_; }

  /// Returns [link] the bytes/s that cross it now.
  std::vector<double> link_rates();

  std::int64_t in_flight() const { return in_flight_; }

 private:
  struct Slot {
    std::int32_t id = 0;
    std::int32_t route = 0;
    std::uint32_t version = 0;
    std::uint32_t mark = 0;
    bool active = false;
    double cap = 0;
    double speed = 0;         ///< rate / cap
    double work_left_ps = 0;  ///< at `since`
    SimTime since{0};
    SimTime end{0};
    std::int64_t order = 0;
    std::vector<std::int32_t> places;  ///< [use] its place in the link's list
  };
  struct Entry {
    SimTime end{0};
    std::int64_t order = 0;
    std::int32_t slot = 0;
    std::uint32_t version = 0;
  };
  struct OnLink {
    std::int32_t slot = 0;
    std::int32_t use = 0;
  };

  void settle();
  void gather_component(std::int32_t slot);
  void share_component(DerivativeTape::Node since);
  void pose_problem();
  void set_speed(Slot& slot, double speed);
  void remove(std::int32_t slot, DerivativeTape::Node at);
  void drop_outdated();
  static bool later(const Entry& a, const Entry& b);

  std::vector<double> capacities_;
  std::vector<Route> routes_;
  std::vector<std::vector<OnLink>> on_link_;  ///< [link] its flows
  std::vector<std::uint32_t> link_mark_;
  std::vector<std::int32_t> local_link_;  ///< [link] its number in the component
  std::vector<Slot> slots_;
  std::vector<std::int32_t> free_slots_;
  std::vector<std::int32_t> dirty_slots_;
  std::vector<std::int32_t> dirty_links_;
  std::vector<DerivativeTape::Node> dirty_nodes_;  ///< [dirty link] since when; empty without derivatives
  std::vector<Entry> heap_;
  std::vector<std::int32_t> component_;  ///< slots
  std::vector<std::int32_t> component_links_;
  std::vector<std::int32_t> ended_slots_;
  std::vector<std::int32_t> ended_;
  std::vector<DerivativeTape::Node> ended_nodes_;
  std::optional<FlowDerivatives> derivatives_;
  MaxMinProblem problem_;
  MaxMinSolver solver_;
  std::uint32_t mark_ = 0;
  std::int64_t next_order_ = 0;
  std::int64_t in_flight_ = 0;
  SimTime now_{0};
};

}}  // namespace plumb::simulator
