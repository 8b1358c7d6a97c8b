// Measures how fast schedules are made, lowered and validated, against the bound of this machine's memory.
//
//   schedules_bench [repeats]      (default 5; three schedules of 10^6 compute actions on 64 ranks)
//
// The bound is the bytes that the three steps have to move once, at the bandwidth of a triad measured here on one core.
// The order is written, read and written again with its messages, and the validator reads the result: 12 bytes an
// action each time. A ratio of 1 would be as fast as memory alone.

#include <cstdlib>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace plumb;
using namespace plumb::test;

struct Case {
  const char* name;
  ScheduleParameters parameters;
};

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const double triad = triad_bytes_per_second();
  fmt::print("triad {:.1f} GB/s\n", triad / 1e9);
  for (const auto& [name, parameters] : {Case{"1f1b", {.ranks = 64, .microbatches = 7813}},
                                         Case{"interleaved", {.ranks = 64, .microbatches = 1954, .chunks = 4}},
                                         Case{"zb-h1", {.ranks = 64, .microbatches = 5209}}}) {
    Schedule order;
    Schedule lowered;
    const double generating = fastest_seconds(repeats, [&] { order = make_schedule(name, parameters); });
    const double lowering = fastest_seconds(repeats, [&] { lowered = lower(order); });
    const double validating = fastest_seconds(repeats, [&] { require_valid(lowered); });
    const double all = fastest_seconds(repeats, [&] { require_valid(lower(make_schedule(name, parameters))); });
    const auto compute_actions = static_cast<double>(action_count(order));
    const double bytes = sizeof(Action) * (2 * compute_actions + 2 * static_cast<double>(action_count(lowered)));
    fmt::print(
        "{:<12} {:.0f} compute actions, {} lowered: generate {:.1f} ms, lower {:.1f} ms, validate {:.1f} ms, "
        "all {:.1f} ms, {:.2f} M compute actions/s, {:.3f} of the memory bound\n",
        name, compute_actions, action_count(lowered), generating * 1e3, lowering * 1e3, validating * 1e3, all * 1e3,
        compute_actions / all / 1e6, bytes / triad / all);
  }
}
