// Compares the engine with the longest path of the action graph, over everything that the catalogue makes.

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/forms/text_form.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "tests/simulator/longest_path.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Counts the actions whose start differs, for both send modes, in the recording pass or in the one that keeps starts
/// only.
int differences(const Schedule& schedule, std::uint64_t seed, int buckets = 0) {
  const CostTable given = with_exchanges(random_costs(schedule, seed, buckets), seed);
  const ActionCosts costs = convert_costs(schedule, given);
  const ActionTable table(schedule);
  int count = 0;
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    const CompiledSchedule compiled = compile(schedule, sends);
    const std::vector<SimTime> engine = action_times(schedule, table, compiled, costs).start;
    const std::vector<SimTime> reference = longest_path_starts(schedule, costs, sends);
    for (std::size_t id = 0; id < reference.size(); ++id) count += engine[id] != reference[id] ? 1 : 0;
    const std::vector<SimTime> steps = step_times(compiled, step_costs(compiled, costs)).start;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int32_t id = compiled.action_ids[i];
      if (compiled.kinds[compiled.steps[i].kind].starts_inside) continue;  // its step starts as its host does
      if (id != ActionTable::kNone) count += steps[i] != reference[id] ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("the engine starts every action when the longest path of the action graph says, whatever the costs") {
    for (int p = 1; p <= 9; ++p) {
      for (int v = 1; v <= 4; ++v) {
        for (int m = 1; m <= 3 * p; ++m) {
          for (const Schedule& schedule : all_lowered(p, m, v)) {
            INFO(schedule.name, " p=", p, " v=", v, " m=", m);
            REQUIRE(differences(schedule, static_cast<std::uint64_t>(p * 10000 + v * 1000 + m)) == 0);
          }
        }
      }
    }
  }

  TEST_CASE("so it does with data parallelism, whose collectives run on channels of their own") {
    for (int zero = 0; zero <= 3; ++zero) {
      for (const char* name : {"gpipe", "1f1b", "interleaved"}) {
        for (int m = 1; m <= 8; ++m) {
          const Schedule schedule =
              lower(make_schedule(name, {.ranks = 4, .microbatches = m}), {.data = {.enabled = true, .zero = zero}});
          INFO(schedule.name, " zero=", zero, " m=", m);
          CHECK(differences(schedule, static_cast<std::uint64_t>(zero * 100 + m)) == 0);
        }
      }
    }
  }

  TEST_CASE("so it does with gradient buckets that are reduced inside the last backward, over the catalogue") {
    int schedules = 0;
    for (const int chunks : {1, 2}) {
      for (const int m : {1, 4, 7}) {
        const LoweringOptions options{.data = {.enabled = true, .zero = chunks - 1, .buckets = {3}}};
        for (const Schedule& schedule : all_lowered(4, m, chunks, options)) {
          INFO(schedule.name, " v=", chunks, " m=", m);
          for (std::uint64_t seed = 0; seed < 5; ++seed) CHECK(differences(schedule, seed, 3) == 0);
          ++schedules;
        }
      }
    }
    CHECK(schedules > 60);
  }

  TEST_CASE("so it does with overlapped pairs and with sequence slices") {
    const Schedule pairs =
        lower(parse_schedule("0F0 0F1 0F2 0B0&0F3 0B1 0B2 0B3\n"
                             "1F0 1F1 1B0&1F2 1B1&1F3 1B2 1B3\n"));
    const Schedule slices =
        lower(parse_schedule("0F0 0F0/1 0F1 0F1/1 0B0/1 0B0 0B1/1 0B1\n"
                             "1F0 1F0/1 1B0/1 1B0 1F1 1F1/1 1B1/1 1B1\n"));
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CHECK(differences(pairs, seed) == 0);
      CHECK(differences(slices, seed) == 0);
    }
  }

  TEST_CASE("so it does with activations that go to the host or to the partner rank") {
    const Schedule offloading =
        lower(parse_schedule("0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0RELOAD0 0B0 0RELOAD1 0B1 0B2\n"
                             "1F0 1F1 1OFFLOAD1 1F2 1I0 1RELOAD1 1W0 1R1 1I1 1W1 1B2\n"));
    const Schedule slices =
        lower(parse_schedule("0F0 0OFFLOAD0 0F0/1 0OFFLOAD0/1 0RELOAD0/1 0B0/1 0RELOAD0 0B0\n"
                             "1F0 1F0/1 1B0/1 1B0\n"));
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CHECK(differences(offloading, seed) == 0);
      CHECK(differences(slices, seed) == 0);
      CHECK(differences(lowered("bpipe", 8, 12), seed) == 0);
    }
  }

  TEST_CASE("so it does with whatever is offloaded, or gathered for a run of actions and ahead of it") {
    for (const CatalogueEntry& entry : catalogue()) {
      const Schedule order = entry.make(
          {.ranks = 4, .microbatches = 8, .chunks = entry.takes_chunks ? 2 : 1, .slices = entry.takes_slices ? 2 : 1});
      for (const int number : {0, 1, 2, 3}) {
        INFO(entry.name, " ", number);
        const auto seed = static_cast<std::uint64_t>(number);
        if (entry.name != "bpipe") CHECK(differences(lower(order, {.offload = number}), seed) == 0);
        const std::vector<bool> copied = stages_with_copies(order);
        const bool shares_weights = entry.name == "helixpipe";
        if (shares_weights || std::ranges::find(copied, true) != copied.end()) continue;
        const Sharding sharding{.gathered_stages = number, .prefetch = number > 0};
        CHECK(differences(lower(order, {.data = {.enabled = true, .zero = 3, .sharding = sharding}}), seed) == 0);
      }
    }
  }
}

}  // namespace plumb::test
