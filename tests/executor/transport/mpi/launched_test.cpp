#include "executor/transport/mpi/launched.h"

#include <cstdlib>

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_SIZE",       "PMI_SIZE",        "SLURM_STEP_NUM_TASKS",
                                      "OMPI_COMM_WORLD_RANK",       "PMI_RANK",        "SLURM_PROCID",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};

/// Unsets all of the variables during a test.
struct CleanEnvironment {
  CleanEnvironment() { clear(); }
  ~CleanEnvironment() { clear(); }
  static void clear() {
    for (const char* name : kVariables) unsetenv(name);
  }
};

}  // namespace

TEST_CASE("a process that nobody started beside others is alone") {
  const CleanEnvironment environment;
  CHECK(launched_ranks() == 0);
  CHECK(launched_rank() == 0);
  setenv("SLURM_PROCID", "3", 1);  // set by a batch script, without a step
  CHECK(launched_rank() == 0);
}

TEST_CASE("mpirun and srun say who started") {
  const CleanEnvironment environment;
  setenv("SLURM_STEP_NUM_TASKS", "16", 1);
  setenv("SLURM_PROCID", "5", 1);
  CHECK(launched_ranks() == 16);
  setenv("SLURM_LOCALID", "1", 1);
  CHECK(launched_rank() == 5);
  CHECK(launched_local_rank() == 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  CHECK(launched_ranks() == 4);
  CHECK(launched_rank() == 2);
}

TEST_CASE("what is no number says nothing") {
  const CleanEnvironment environment;
  setenv("OMPI_COMM_WORLD_SIZE", "four", 1);
  CHECK(launched_ranks() == 0);
}

}  // namespace plumb::test
