#pragma once

#include "executor/cuda_library/nccl_library.h"

namespace plumb { inline namespace tools {

/// Measures NCCL over the GPUs of this machine, behind a progress bar. Notes say which values were wrong and how many
/// sizes did not fit into the budget. Throws RunError with what is missing or went wrong.
NcclMeasurement measure_gpus(const NcclMeasureOptions& options);

}}  // namespace plumb::tools
