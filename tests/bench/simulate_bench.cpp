// Measures how fast the simulator is, against the bound of this machine's memory.
//
//   simulate_bench                             small and middle schedules
//   simulate_bench [ranks] [microbatches]      the compiled engine's pass on lowered 1F1B (1024 8192: 16.8 M compute
//                                              actions, under 2 GB)
//
// The bound of the pass is 28 bytes for each compute action (20 read, 8 written; messages count for nothing) at the
// bandwidth of a triad measured here, on the same core. A ratio of 1 would be a pass as fast as memory alone.

#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "simulator/simulate.h"
#include "simulator/steady_state.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace plumb;
using namespace plumb::test;

constexpr double kBytesPerComputeAction = 28;

/// Times lowering, compiling, one pass and a whole simulation of a schedule.
void time_schedule(const char* name, const ScheduleParameters& parameters, int repeats, double triad) {
  Schedule order = make_schedule(name, parameters);
  const auto compute_actions = static_cast<double>(action_count(order));
  const CostTable costs = chunk_cost_table(static_cast<int>(order.stages.size()), {.hop_latency = Seconds{0.01}});
  Schedule lowered;
  const double lowering = fastest_seconds(repeats, [&] { lowered = lower(order); });
  order = {};
  const ActionCosts converted = convert_costs(lowered, costs);
  std::optional<CompiledSchedule> compiled;
  const double compiling = fastest_seconds(repeats, [&] {
    compiled.reset();
    compiled = compile(lowered, Sends::kBuffered);
  });
  const std::vector<StepCost> by_kind = step_costs(*compiled, converted);
  StepTimes times;
  const double passing =
      fastest_seconds(3 * repeats, [&] { times = step_times(*compiled, by_kind, std::move(times)); });
  times = {};
  const double again = fastest_seconds(repeats, [&] { simulate(lowered, *compiled, costs, false); });
  const double rate = compute_actions / passing;
  fmt::print(
      "{} p={} m={}: {:.0f} compute actions, {} lowered, {} steps, {} registers\n"
      "  lower {:.1f} ms, compile {:.1f} ms, pass {:.2f} ms = {:.0f} M compute actions/s = {:.3f} of the memory bound\n"
      "  simulation of the compiled schedule, sums only {:.1f} ms; lower and simulate once {:.1f} ms; {:.0f} MB "
      "resident at most\n",
      name, parameters.ranks, parameters.microbatches, compute_actions, action_count(lowered), compiled->steps.size(),
      compiled->registers, lowering * 1e3, compiling * 1e3, passing * 1e3, rate / 1e6,
      rate * kBytesPerComputeAction / triad, again * 1e3, (lowering + compiling + again) * 1e3, peak_resident_mb());
}

/// Times a simulation to its sums and to its timeline, with validation or without, under both ways of sending.
void time_simulations(const char* name, const ScheduleParameters& parameters, int repeats) {
  const Schedule lowered = lower(make_schedule(name, parameters));
  const CostTable costs = chunk_cost_table(static_cast<int>(lowered.stages.size()), {.hop_latency = Seconds{0.01}});
  const auto milliseconds = [&](const SimulationOptions& options) {
    return 1e3 * fastest_seconds(repeats, [&] { simulate(lowered, costs, options); });
  };
  fmt::print(
      "{} p={} m={}: with timeline {:.1f} ms, sums only {:.1f} ms, known to be valid {:.1f} ms, with rendezvous "
      "{:.1f} ms\n",
      name, parameters.ranks, parameters.microbatches, milliseconds({}), milliseconds({.record_timeline = false}),
      milliseconds({.validate = false, .record_timeline = false}),
      milliseconds({.sends = Sends::kRendezvous, .validate = false, .record_timeline = false}));
}

/// Times the sums of 1F1B on 16 ranks, with making and lowering the schedule.
void time_steady_state(int microbatches, int repeats) {
  const auto lowered = [](int m) { return lower(make_schedule("1f1b", {.ranks = 16, .microbatches = m})); };
  const CostTable costs = chunk_cost_table(16, {.hop_latency = Seconds{0.01}});
  Simulation simulation;
  const double seconds = fastest_seconds(repeats, [&] {
    simulation = simulate_repeating({.lowered = lowered, .microbatches = microbatches, .period = 16}, costs);
  });
  fmt::print("1f1b p=16 m={}: made, lowered and simulated in {:.2f} ms (engine: {})\n", microbatches, seconds * 1e3,
             simulation.engine);
}

}  // namespace

int main(int argc, char** argv) {
  const double triad = triad_bytes_per_second();
  fmt::print("triad {:.1f} GB/s: {:.0f} M compute actions/s at {} bytes each\n", triad / 1e9,
             triad / kBytesPerComputeAction / 1e6, kBytesPerComputeAction);
  if (argc > 2) {
    time_schedule("1f1b", {.ranks = std::atoi(argv[1]), .microbatches = std::atoi(argv[2])}, 1, triad);
    return 0;
  }
  time_schedule("1f1b", {.ranks = 64, .microbatches = 7813}, 5, triad);
  time_schedule("interleaved", {.ranks = 64, .microbatches = 1954, .chunks = 4}, 5, triad);
  time_schedule("zb-h1", {.ranks = 64, .microbatches = 5209}, 5, triad);
  time_simulations("1f1b", {.ranks = 64, .microbatches = 256}, 20);
  time_simulations("interleaved", {.ranks = 64, .microbatches = 512, .chunks = 4}, 5);
  time_steady_state(64, 20);
  time_steady_state(32768, 20);
}
