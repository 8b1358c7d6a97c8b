// Trains by mpirun with a process and a machine for each rank: ids go by MPI, bytes by NCCL on the host. Rank 0 prints
// its losses, and those of one machine. Usage: linked_ranks [SEED of rank 1]

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "executor/training/device/run_linked_rank.h"
#include "executor/transport/mpi/joined.h"
#include "executor/transport/mpi/mpi_board.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/transport/nccl/linked_host_machine.h"

using namespace plumb;
using namespace plumb::test;

int main(int argc, char** argv) {
  try {
    const std::unique_ptr<RankBoard> board = mpi_board(Seconds{20});
    RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = board->ranks(), .microbatches = 4}));
    spec.steps = 2;
    const RunSpec same = spec;
    if (argc > 1 && board->rank() == 1) spec.seed = static_cast<std::uint64_t>(std::atoi(argv[1]));
    HostNccl port;
    LinkedRank rank{.board = board.get(), .port = &port, .device = std::to_string(board->rank())};
    rank.make_machine = [&](LinkedCalls& links) { return std::make_unique<LinkedHostMachine>(port, links, spec.half); };
    const std::optional<RunResult> result = run_linked_rank(spec, rank);
    if (!result) return 0;
    HostMachine alone;
    for (const RunResult& one : {*result, run_device(same, alone)}) {
      for (const double loss : one.losses) std::printf("%.17g ", loss);
      std::printf("\n");
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumb: %s\n", error.what());
    stop_mpi_ranks(1);
  }
}
