#pragma once
// Times messages over the network between the first two of the ranks that mpirun or srun has started.

#include <optional>
#include <vector>

#include "executor/measure/measure_messages.h"

namespace plumb { inline namespace executor {

/// Called by all ranks; those behind the first two only wait. Rank 0 gets the samples of measure_messages(), the others
/// nothing. Throws SpecError if there is one rank only, and RunError as the transport does.
std::optional<std::vector<KernelSample>> measure_messages_mpi(const MessageMeasureOptions& options);

}}  // namespace plumb::executor
