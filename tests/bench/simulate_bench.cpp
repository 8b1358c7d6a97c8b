// How fast is the simulator, and how far is that from what this machine's memory allows?
//
//   simulate_bench [ranks] [chunks] [microbatches]      (default 64 4 512, interleaved 1F1B)
//
// The bound: a triad a[i] = b[i] + s * c[i] over arrays far larger than the caches, measured here on one core, divided
// by the bytes that any simulation has to move for an action once: its 12 bytes in, its start and end (16 bytes) out;
// with a timeline a span (40 bytes) more. A ratio of 1 would be a simulation as fast as memory alone.

#include <cstdlib>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/lower.h"
#include "simulator/simulate.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace plumb;

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
