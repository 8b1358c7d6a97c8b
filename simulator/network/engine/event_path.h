#pragma once
// Finds the critical path of a run of the event engine. It leads through all replicas, as a collective waits for the
// last of its group. The action that a collective waited for is on the path, be it by itself or inside another.

#include <vector>

#include "simulator/network/engine/event_program.h"
#include "simulator/network/engine/event_times.h"
#include "simulator/network/topology/network_spec.h"
#include "simulator/path/critical_path.h"

namespace plumb { inline namespace simulator {

/// Returns the critical path (simulator/path/critical_path.h) of the last of all replicas; the replica of each step is
/// the number of one that is simulated. `times` need their meetings. An action whose collective waited inside it for
/// another replica is on the path from that moment on, behind the action of the other, with Reason::kReduction. If
/// several replicas came last together, the action's own replica is named.
std::vector<CriticalStep> critical_path(const Schedule& lowered, const EventProgram& program,
                                        const NetworkSpec& network, const EventTimes& times);

}}  // namespace plumb::simulator
