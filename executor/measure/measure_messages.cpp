#include "executor/measure/measure_messages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/transport/rank_threads.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

KernelSample sample_of(std::int64_t bytes, std::vector<Seconds> times) {
  std::ranges::sort(times);
  return {.kernel = "message",
          .shape = {bytes},
          .median = times[times.size() / 2],
          .fastest = times.front(),
          .slowest = times.back(),
          .repeats = static_cast<int>(times.size()),
          .busy_ranks = 2};
}

}  // namespace

std::vector<KernelSample> measure_messages(Transport& transport, int rank, const MessageMeasureOptions& options,
                                           const Sleeper& sleeper) {
  if (options.repeats < 1) throw SpecError(fmt::format("{} repeats: give at least 1", options.repeats));
  TensorPool pool;
  const auto channel = [](int source) { return TransportChannel{source, 1 - source, MessageKind::kActivation}; };
  std::vector<KernelSample> samples;
  for (const std::int64_t bytes : options.sizes_bytes) {
    if (bytes < 4) throw SpecError(fmt::format("a message of {} bytes: give 4 or more", bytes));
    const std::int64_t elements = bytes / 4;
    std::vector<Seconds> times;
    for (int round = 0; round <= options.repeats; ++round) {
      const MessageTag tag{.stage = static_cast<int>(elements), .microbatch = round};
      const TicketPtr incoming = transport.receive(channel(1 - rank), tag, pool.take(elements));
      Tensor outgoing = pool.take_zeros(elements);
      if (rank == 1) {
        transport.wait_received(incoming);
        transport.wait_sent(transport.send(channel(1), tag, std::move(outgoing)));
        continue;
      }
      sleeper.sleep_until(sleeper.now() + to_sim_time(options.idle));
      const SimTime start = sleeper.now();
      const TicketPtr sent = transport.send(channel(0), tag, std::move(outgoing));
      transport.wait_received(incoming);
      if (round > 0) times.push_back(to_seconds(sleeper.now() - start) / 2);
      transport.wait_sent(sent);
    }
    if (rank == 0) samples.push_back(sample_of(bytes, std::move(times)));
  }
  return samples;
}

std::vector<KernelSample> measure_messages_of_threads(const MessageMeasureOptions& options) {
  const Sleeper sleeper;
  const RankPools memory(2);
  constexpr Seconds kWatchdog{60};
  InProcessTransport transport({.ranks = 2, .watchdog = kWatchdog, .pools = memory.pool_pointers()},
                               [&sleeper] { return sleeper.now(); });
  std::vector<KernelSample> samples;
  run_rank_threads(2, transport, kWatchdog, {}, [&](int rank) {
    ask_for_prompt_waking();
    std::vector<KernelSample> own = measure_messages(transport, rank, options, sleeper);
    if (rank == 0) samples = std::move(own);
  });
  return samples;
}

}}  // namespace plumb::executor
