#pragma once

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// `calibrate --only nccl` prints NCCL's collectives over this machine's GPUs by size, as nccl-tests does, beside the
/// model's prediction for --base, and the slowdown of products beside them. With --output it writes the base with the
/// measurements (tools/runs/nccl_cluster.h).
int calibrate_nccl(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
