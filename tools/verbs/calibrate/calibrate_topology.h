#pragma once

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// `calibrate --only topology` writes the GPUs, NVLinks, PCIe and NICs of this machine, or of a printed table, into a
/// cluster file.
int calibrate_topology(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
