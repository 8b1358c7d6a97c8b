#pragma once

#include "tools/verbs/verbs.h"

namespace plumb {

/// `calibrate --only nccl`: NCCL's collectives over this machine's GPUs by size, as nccl-tests prints them, with what
/// the model predicts for --base.
int calibrate_nccl(const CalibrateArguments& arguments);

}  // namespace plumb
