// How fast is the simulator, and how far is that from what this machine's memory allows?
//
//   simulate_bench [ranks] [chunks] [microbatches]      (default 64 4 512, interleaved 1F1B)
//
// The bound: a triad a[i] = b[i] + s * c[i] over arrays far larger than the caches, measured here on one core, divided
// by the bytes that any simulation has to move for an action once: its 12 bytes in, its start and end (16 bytes) out;
// with a timeline a span (40 bytes) more. A ratio of 1 would be a simulation as fast as memory alone.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/lower.h"
#include "simulator/simulate.h"

namespace {

using namespace plumb;

/// The fastest of several runs.
template <typename Run>
double fastest_seconds(int repeats, Run run) {
  double fastest = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return fastest;
}

/// Bytes a second that a triad reads and writes.
double triad_bytes_per_second() {
  constexpr std::size_t kElements = 8'000'000;  // 64 MB an array
  std::vector<double> a(kElements, 0.0);
  std::vector<double> b(kElements, 1.0);
  std::vector<double> c(kElements, 2.0);
  const double seconds = fastest_seconds(7, [&] {
    for (std::size_t i = 0; i < kElements; ++i) a[i] = b[i] + 3.0 * c[i];
  });
  if (a[kElements / 2] != 7.0) std::abort();
  return 3.0 * sizeof(double) * kElements / seconds;
}

/// The largest resident set so far, in MB; 0 where the system does not say.
double peak_resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1000;
  }
  return 0;
}

void report(const char* what, std::int64_t actions, double seconds, double bound_bytes_per_action,
            double bytes_per_second) {
  const double rate = static_cast<double>(actions) / seconds;
  fmt::print("{:<28} {:>9.3f} ms {:>9.1f} M actions/s   {:.3f} of the memory bound\n", what, seconds * 1e3, rate / 1e6,
             rate * bound_bytes_per_action / bytes_per_second);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const int ranks = argument(1, 64);
  const int chunks = argument(2, 4);
  const int microbatches = argument(3, 512);
  const Schedule schedule = lower(make_schedule(chunks > 1 ? "interleaved" : "1f1b",
                                                {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}));
  const CostTable costs = chunk_cost_table(ranks * chunks, {.hop_latency = Seconds{0.01}});
  const std::int64_t actions = action_count(schedule);
  const double before_mb = peak_resident_mb();

  const double with_timeline = fastest_seconds(7, [&] { simulate(schedule, costs); });
  const double after_mb = peak_resident_mb();
  const double sums_only = fastest_seconds(15, [&] { simulate(schedule, costs, {.record_timeline = false}); });
  const double rendezvous =
      fastest_seconds(15, [&] { simulate(schedule, costs, {.sends = Sends::kRendezvous, .record_timeline = false}); });

  const double triad = triad_bytes_per_second();
  constexpr double kActionBytes = sizeof(Action) + 2 * sizeof(SimTime);
  fmt::print("{}: {} actions, triad {:.1f} GB/s, {:.0f} MB resident before, {:.0f} MB with the timeline\n",
             schedule.name, actions, triad / 1e9, before_mb, after_mb);
  report("with timeline", actions, with_timeline, kActionBytes + sizeof(Span), triad);
  report("sums only, buffered", actions, sums_only, kActionBytes, triad);
  report("sums only, rendezvous", actions, rendezvous, kActionBytes, triad);
}
