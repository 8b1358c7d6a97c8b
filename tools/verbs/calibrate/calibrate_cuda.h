#pragma once
// `plumb calibrate --backend cuda` measures GPUs.

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Measures the first GPU as the ranks share it, or, with `--gpus each`, the first GPU and NCCL between as many GPUs as
/// there are ranks. Writes a cluster of one node. Throws UsageError for options of the other calibrations, RunError if
/// there is no GPU, and InputError if the file cannot be written or `--gpus each` has fewer than 2 GPUs or than ranks.
int calibrate_cuda(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools
