#pragma once

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// `calibrate --only gpus` prints the GPUs that CUDA lets this process use, which depend on CUDA_VISIBLE_DEVICES, MIG
/// and the driver. The tool exits with 1 and the reason if there are none.
int calibrate_gpus(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
