#pragma once
// Holds a WorldProgram to what must be true of it whatever the timing of its streams, by which calls have ended when
// another starts.

#include <string>
#include <vector>

#include "executor/program/device/world_calls.h"

namespace plumb::test {

/// Returns the faults, a sentence each; empty if there are none:
///   a rank's part of a call does not stand behind those that the pipeline's call stands behind;
///   pieces are out of order;
///   a member of an exchange does not stand behind the calls by which the others bring their parts;
///   a call behind an exchange does not stand behind all of its members.
std::vector<std::string> check_world_calls(const WorldProgram& world, const DeviceProgram& pipeline);

}  // namespace plumb::test
