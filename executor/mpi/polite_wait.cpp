#include "executor/mpi/polite_wait.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/timed/sleeper.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

void wait_politely(const PoliteWait& wait, const std::function<bool()>& has_ended) {
  constexpr SimTime kShortestPause{5'000'000}, kLongestPause{200'000'000};
  constexpr Seconds kForTheFirstToSpeak{0.5};  // all ranks may wait in vain at once, and one should speak
  const Seconds turn = wait.rank == 0 ? Seconds{0} : kForTheFirstToSpeak;
  const Sleeper sleeper;
  SimTime pause = kShortestPause;
  while (!has_ended()) {
    const SimTime now = sleeper.now();
    if (wait.patience && now > to_sim_time(*wait.patience + turn))
      throw RunError(fmt::format("rank {}, outside its actions, waited for {}, and for {} s nothing came", wait.rank,
                                 wait.what, wait.patience->count()));
    if (now < to_sim_time(wait.eager)) continue;
    sleeper.sleep_until(now + pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}}  // namespace plumb::executor
