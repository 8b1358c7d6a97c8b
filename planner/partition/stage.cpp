#include "planner/partition/stage.h"

namespace plumb { inline namespace planner {

int device_count(const std::vector<MachineLevel>& levels) {
  int devices = 1;
  for (const MachineLevel& level : levels) devices *= level.count;
  return devices;
}

}}  // namespace plumb::planner
