#pragma once
// The memory in which a program's buffers lie: an arena on the device for each rank that is here, and its part of the
// host's memory for OFFLOADs.

#include <cstddef>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/program/calls/placed_calls.h"
#include "executor/program/device/device_program.h"
#include "executor/training/device/device_world.h"

namespace plumb { inline namespace executor {

class DeviceArenas {
 public:
  DeviceArenas(DeviceMachine& machine, const DeviceProgram& program, const DeviceWorld& world);

  /// Address of a place on a rank of the lane; null where nothing is there, or the rank is not here.
  std::byte* address(ArenaPlace place, int lane) const;

 private:
  std::size_t ranks_;
  std::vector<std::byte*> arenas_;  // [lane, rank]; null for those that are not here
  std::vector<std::byte*> hosts_;   // [lane, rank]; null, too, for those that need none
};

}}  // namespace plumb::executor
