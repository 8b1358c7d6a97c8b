#pragma once

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// `calibrate --only nccl`: NCCL's collectives over this machine's GPUs by size, as nccl-tests prints them, with what
/// the model predicts for --base; and how much slower products are beside them. With --output the base with what was
/// measured (tools/runs/nccl_cluster.h).
int calibrate_nccl(const CalibrateArguments& arguments);

}}  // namespace plumb::tools
