#pragma once

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// `calibrate --only gpus`: the GPUs that CUDA lets this process use, as CUDA_VISIBLE_DEVICES, MIG and the driver have
/// it. Exit 1 with the reason where there are none.
int calibrate_gpus(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
