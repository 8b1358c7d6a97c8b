#include "executor/transport/mpi/launched.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace plumb { inline namespace executor {
namespace {

/// Returns the first of these variables that is a number; 0 if none is.
int number_in(const std::array<const char*, 3>& variables) {
  for (const char* name : variables) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text(value);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) return std::max(number, 0);
  }
  return 0;
}

}  // namespace

int launched_ranks() {
  // srun sets the size of its step; a batch script knows the size of its job, but has no step.
  return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
}

int launched_rank() {
  return launched_ranks() == 0 ? 0 : number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
}

int launched_local_rank() {
  return launched_ranks() == 0 ? 0 : number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
}

}}  // namespace plumb::executor
