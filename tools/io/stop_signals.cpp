#include "tools/io/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "executor/transport/mpi/launched.h"

namespace plumb { inline namespace tools {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM};

std::atomic<int> stop_signal{0};  // the signal that came; a handler has no other place to store it
std::atomic<bool> stop_is_said{true};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// The signal handler calls only functions that POSIX allows in one.
void note_stop(int signal) {
  stop_signal.store(signal);
  for (const int each : kStopSignals) std::signal(each, SIG_DFL);
  constexpr std::string_view kSaid = "stopping behind this step; once more stops at once\n";
  if (!stop_is_said.load()) return;
  if (write(STDERR_FILENO, kSaid.data(), kSaid.size()) < 0) return;  // a failed note changes nothing
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal.store(0);
  stop_is_said.store(launched_rank() == 0);
  for (const int signal : kStopSignals)
    if (std::signal(signal, note_stop) == SIG_IGN) std::signal(signal, SIG_IGN);
}

StopSignals::~StopSignals() {
  for (const int signal : kStopSignals)
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
}

bool StopSignals::has_come() const {
  return stop_signal.load() != 0;
}

std::string StopSignals::name() const {
  return stop_signal.load() == SIGTERM ? "SIGTERM" : "SIGINT";
}

int StopSignals::exit_code() const {
  constexpr int kOfSignals = 128;
  return kOfSignals + stop_signal.load();
}

}}  // namespace plumb::tools
