#pragma once
// The cost table with which a replay on a device is planned: bytes as its stages count them, and times as guesses by
// FLOPs, which decide about expected lifetimes and the order of calls alone.

#include "executor/spec/run_spec.h"
#include "executor/training/device/device_stages.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

CostTable device_costs(const RunSpec& spec, const DeviceStages& stages);

}}  // namespace plumb::executor
