#pragma once
// Holds a DeviceProgram to what must be true of it whatever the timing of its streams, without a device: by which calls
// have ended when another starts.

#include <string>
#include <vector>

#include "executor/program/device/device_program.h"
#include "executor/program/device/joint_calls.h"
#include "schedules/schedule.h"

namespace plumb::test {

/// Returns the faults, a sentence each; empty if there are none:
///   a wait names a call that stands later, whose event is not recorded yet;
///   an action does not stand behind one that it depends on (schedules/dependencies/dependencies.h);
///   a buffer is used before its first call has written it;
///   two buffers share bytes, and one is written while the other may still be in use;
///   a buffer reaches beyond its arena;
///   an action works with weights that its stage has replaced, and no buffer has them.
/// passes: as plan_device().
std::vector<std::string> check_device_program(const DeviceProgram& program, const Schedule& lowered,
                                              JointPasses passes = JointPasses::kNone);

}  // namespace plumb::test
