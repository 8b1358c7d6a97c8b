#pragma once
// `plumb calibrate --backend cuda`.

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Measures the first GPU as so many ranks share it, or, with `--gpus each`, the first GPU and NCCL between as many as
/// there are ranks, and writes them as a cluster of one node. Throws SpecError for options of the other calibrations,
/// RunError if there is no GPU, InputError if the file cannot be written or ranks do not have a GPU each.
int calibrate_cuda(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools
