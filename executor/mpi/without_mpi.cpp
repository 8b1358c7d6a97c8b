// The functions of this folder in a program without MPI, which throw SpecError where MPI would be needed.

#include <cstdlib>

#include "executor/mpi/measure_mpi.h"
#include "executor/mpi/run_mpi.h"
#include "executor/mpi/run_timed_mpi.h"
#include "executor/transport/mpi/joined.h"
#include "executor/transport/mpi/mpi_board.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

[[noreturn]] void refuse() {
  throw SpecError(
      "this plumb was built without MPI and cannot join other processes: meson configure -Dmpi=enabled, or "
      "start it without mpirun");
}

}  // namespace

std::optional<TimedResult> run_timed_mpi(const TimedSpec&, const TimedOptions&) {
  refuse();
}

std::optional<RunResult> run_mpi(const RunSpec&, const RunOptions&) {
  refuse();
}

std::optional<std::vector<KernelSample>> measure_messages_mpi(const MessageMeasureOptions&) {
  refuse();
}

std::unique_ptr<RankBoard> mpi_board(Seconds) {
  refuse();
}

bool has_joined_mpi() {
  return false;
}

void stop_mpi_ranks(int status) {
  std::_Exit(status);
}

}}  // namespace plumb::executor
