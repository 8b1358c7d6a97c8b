#include "executor/mpi/measure_mpi.h"

#include "executor/spec/fingerprint.h"
#include "executor/transport/mpi/mpi_transport.h"
#include "executor/transport/mpi/mpi_world.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {

std::optional<std::vector<KernelSample>> measure_messages_mpi(const MessageMeasureOptions& options) {
  constexpr Seconds kPatience{600};  // patience of the ranks that only wait
  MpiWorld& world = MpiWorld::joined();
  Fingerprint print;
  for (const std::int64_t bytes : options.sizes_bytes) print.add(bytes);
  print.add(options.repeats);
  world.require_team(world.size(), print.value(), kPatience);
  if (world.size() < 2) throw SpecError("messages go between two ranks: start them with mpirun -n 2");
  const Sleeper sleeper(world.common_moment_ns());
  std::vector<KernelSample> samples;
  {
    MpiTransport transport({}, [&sleeper] { return sleeper.now(); });
    ask_for_prompt_waking();
    if (world.rank() < 2) samples = measure_messages(transport, world.rank(), options, sleeper);
    world.gather({});  // nobody leaves before the measuring is over
  }
  if (world.rank() != 0) return {};
  return samples;
}

}}  // namespace plumb::executor
