#pragma once
// Messages over the network that joins the first two of the ranks that mpirun or srun has started.

#include <optional>
#include <vector>

#include "executor/measure/measure_messages.h"

namespace plumb { inline namespace executor {

/// Called by all ranks; those behind the first two wait. Rank 0 gets measure_messages()'s samples, the others nothing.
/// Throws SpecError if there is one rank only, RunError as the transport does.
std::optional<std::vector<KernelSample>> measure_messages_mpi(const MessageMeasureOptions& options);

}}  // namespace plumb::executor
