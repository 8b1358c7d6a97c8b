#include "executor/transport/emulated/sleeper.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

#include "executor/transport/monotonic_clock.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

}  // namespace

Sleeper::Sleeper() : origin_ns_(monotonic_ns()) {}

SimTime Sleeper::now() const {
  return SimTime{(monotonic_ns() - origin_ns_) * kPicosecondsPerNanosecond};
}

void Sleeper::sleep_until(SimTime moment) const {
  thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(slack);
  // The target is rounded up, so that no thread wakes before the moment.
  const std::int64_t target_ns =
      origin_ns_ + (moment.count() + kPicosecondsPerNanosecond - 1) / kPicosecondsPerNanosecond;
  const timespec target{.tv_sec = target_ns / kNanosecondsPerSecond, .tv_nsec = target_ns % kNanosecondsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nullptr) == EINTR) {
  }
}

void ask_for_prompt_waking() {
  const sched_param least{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  static_cast<void>(pthread_setschedparam(pthread_self(), SCHED_FIFO, &least));
}

}}  // namespace plumb::executor
