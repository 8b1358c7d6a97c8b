#include "executor/transport/mpi/polite_wait.h"

#include <chrono>

#include <fmt/format.h>

#include "executor/transport/poll_pause.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

void wait_politely(const PoliteWait& wait, const std::function<bool()>& has_ended) {
  constexpr Seconds kForTheFirstToSpeak{0.5};  // all ranks may wait in vain at once, and one should speak
  const Seconds turn = wait.rank == 0 ? Seconds{0} : kForTheFirstToSpeak;
  const auto start = std::chrono::steady_clock::now();
  PollPause pause(wait.eager);
  while (!has_ended()) {
    if (wait.patience && std::chrono::steady_clock::now() - start > *wait.patience + turn)
      throw RunError(fmt::format("rank {}, outside its actions, waited for {}, and for {} s nothing came", wait.rank,
                                 wait.what, wait.patience->count()));
    pause.pause();
  }
}

}}  // namespace plumb::executor
