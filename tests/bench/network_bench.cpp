// Measures how fast shared links are simulated, against a bound of this machine.
//
//   network_bench [tensor] [pipeline] [data] [microbatches]     (default 8 16 128 16: 16,384 ranks, one by one)
//
// The bound of a flow's end is measured here: a binary heap of as many entries as there are components is popped and
// pushed once for each end (the "hold" model). No event-driven simulation can do with less.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/network/placement/place.h"
#include "simulator/network/simulate_network.h"
#include "simulator/network/topology/fabric.h"

namespace {

using namespace plumb;

/// Returns processor time, so that other programs on the machine do not count.
double now_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_resident_gb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1e6;
  }
  return 0;
}

/// Returns the pops and pushes a second on a heap of 24-byte entries.
double holds_per_second(std::size_t entries) {
  struct Entry {
    std::int64_t time, order, payload;
  };
  const auto later = [](const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  };
  std::mt19937_64 random(1);
  std::vector<Entry> heap;
  for (std::size_t i = 0; i < entries; ++i) heap.push_back({static_cast<std::int64_t>(random() % 1000), 0, 0});
  std::ranges::make_heap(heap, later);
  constexpr std::int64_t kHolds = 2'000'000;
  const double begin = now_seconds();
  for (std::int64_t i = 0; i < kHolds; ++i) {
    std::ranges::pop_heap(heap, later);
    heap.back().time += static_cast<std::int64_t>(random() % 1000);
    heap.back().order = i;
    std::ranges::push_heap(heap, later);
  }
  const double seconds = now_seconds() - begin;
  if (heap.front().payload != 0) std::abort();
  return kHolds / seconds;
}

/// Prints the ends a second where `group` flows at a time share a link. A flow that ends starts again with another
/// length.
void bench_flows(const char* what, int flows, int group, std::int64_t ends) {
  std::vector<Route> routes;
  const int groups = flows / group;
  for (int f = 0; f < flows; ++f) {
    routes.push_back({.uses = {{f / group, 1}}});
    if (group > 2) routes.back().uses.push_back({groups + f, 1});
  }
  std::vector<double> capacities(static_cast<std::size_t>(groups), 50e9);
  std::mt19937_64 random(7);
  for (int f = 0; f < flows; ++f) capacities.push_back(50e9 * static_cast<double>(1 + random() % 8) / group);
  Flows network(capacities, routes);
  const auto start = [&](std::int32_t f, SimTime now) {
    network.start({.id = f,
                   .route = f,
                   .cap_bytes_per_second = 50e9,
                   .alone = SimTime{1'000'000 + static_cast<std::int64_t>(random() % 1'000'000)}},
                  now);
  };
  for (std::int32_t f = 0; f < flows; ++f) start(f, SimTime{0});
  const double begin = now_seconds();
  std::int64_t ended = 0;
  while (ended < ends) {
    const SimTime now = *network.next_end();
    const std::vector<std::int32_t> taken = network.take_ended();
    for (const std::int32_t f : taken) start(f, now);
    ended += static_cast<std::int64_t>(taken.size());
  }
  const double rate = static_cast<double>(ended) / (now_seconds() - begin);
  fmt::print("{:<40} {:>9.3f} M ends/s   {:.3f} of the heap's bound\n", what, rate / 1e6,
             rate / holds_per_second(static_cast<std::size_t>(groups)));
}

CostTable costs_of(const Schedule& schedule, double compute_s, std::int64_t message_bytes, double bytes_per_second) {
  CostTable costs = chunk_cost_table(static_cast<int>(schedule.stages.size()),
                                     {.forward = {Seconds{compute_s}}, .backward = {Seconds{2 * compute_s}}});
  costs.default_link = {.latency = Seconds{14e-6}, .bytes_per_second = bytes_per_second};
  for (StageCosts& stage : costs.stages) {
    stage.activation_message_bytes = stage.gradient_message_bytes = message_bytes;
    stage.segments[static_cast<std::size_t>(Op::kReduceGrad)] = {{Segment{
        .kind = Segment::Kind::kCollective, .seconds = Seconds{0.05}, .group = Group::kData, .bytes = 1'000'000'000}}};
  }
  return costs;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  bench_flows("pairs on a link, 64 at once", 64, 2, 3'000'000);
  bench_flows("128 at once in one component", 128, 128, 100'000);

  {
    const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 64, .microbatches = 256}));
    const CostTable costs = costs_of(schedule, 1e-3, 20'000'000, 45e9);
    // Both directions of a boundary share one link, so that every message is a flow.
    NetworkSpec network;
    for (int s = 0; s < 64; ++s) {
      network.links.push_back({"boundary", 45e9});
      network.routes.push_back({.uses = {{s, 1}}});
      network.activation_route.push_back(s);
      network.gradient_route.push_back(std::max(0, s - 1));
    }
    double fastest = 1e300;
    for (int i = 0; i < 7; ++i) {
      const double begin = now_seconds();
      const Simulation simulation = simulate(schedule, costs, network, {.validate = false, .record_timeline = false});
      fastest = std::min(fastest, now_seconds() - begin);
      if (simulation.engine != "events") std::abort();
    }
    fmt::print("{:<40} {:>9.3f} ms\n", "1f1b p=64 m=256, every message a flow", fastest * 1e3);
  }

  const ProcessGrid grid{.tensor = argument(1, 8), .context = argument(3, 128), .pipeline = argument(2, 16)};
  const Schedule schedule =
      lower(make_schedule("interleaved", {.ranks = grid.pipeline, .microbatches = argument(4, 16), .chunks = 2}),
            {.data = {.enabled = true}});
  const CostTable costs = costs_of(schedule, 5e-3, 16'000'000, 45e9);
  const double begin = now_seconds();
  const Fabric fabric = fabric_of(FabricSpec{.nodes = world_size(grid) / 8,
                                             .devices_per_node = 8,
                                             .port_bytes_per_second = 367e9,
                                             .nics_per_node = 8,
                                             .nic_bytes_per_second = 45e9});
  const NetworkSpec network = place(fabric, 8, grid, schedule, costs);
  const double placed = now_seconds();
  for (const Replicas replicas : {Replicas::kUnfolded, Replicas::kFolded}) {
    const double start = now_seconds();
    const Simulation simulation =
        simulate(schedule, costs, network, {.validate = false, .record_timeline = false}, replicas);
    const double seconds = now_seconds() - start;
    fmt::print("{} ranks, {} replicas: step {:.6f} s, placed in {:.2f} s, simulated in {:.2f} s, {:.2f} GB resident\n",
               world_size(grid), simulation.replicas, to_seconds(simulation.makespan).count(), placed - begin, seconds,
               peak_resident_gb());
  }
}
