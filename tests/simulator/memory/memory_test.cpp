// Memory over time, worked out by hand with F = 1 s, B = 2 s, I = W = 1 s.

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "simulator/memory/memory.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

std::vector<MemorySample> samples(std::initializer_list<std::pair<int, std::int64_t>> by_second) {
  std::vector<MemorySample> result;
  for (const auto& [second, bytes] : by_second) result.push_back({.time = second * kSecond, .bytes = bytes});
  return result;
}

CostTable with_memory(CostTable costs, const StageMemory& memory) {
  for (StageCosts& stage : costs.stages) stage.memory = memory;
  return costs;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE(
      "a rank holds its state always, an activation from F to the end of B, and a workspace while an action runs") {
    const Schedule schedule = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
    const StageMemory memory{.parameter_bytes = 100,
                             .gradient_bytes = 200,
                             .optimizer_bytes = 700,
                             .forward_bytes = 10,
                             .forward_workspace_bytes = 1,
                             .backward_workspace_bytes = 3};
    const Simulation result = simulate(schedule, with_memory(whole_costs(2, 1, 2), memory));
    // rank 0: F0 [0,1] F1 [1,2] B0 [4,6] B1 [7,9]; rank 1: F0 [1,2] B0 [2,4] F1 [4,5] B1 [5,7]
    CHECK(result.timeline.ranks[0].memory ==
          samples({{0, 1011}, {1, 1021}, {2, 1020}, {4, 1023}, {6, 1010}, {7, 1013}, {9, 1000}}));
    CHECK(result.timeline.ranks[1].memory ==
          samples({{0, 1000}, {1, 1011}, {2, 1013}, {4, 1011}, {5, 1013}, {7, 1000}}));
    CHECK(result.peak_memory_bytes == std::vector<std::int64_t>{1023, 1013});
    CHECK(result.peak_activations == std::vector<int>{2, 1});
  }

  TEST_CASE("a received message is held from the issue of its RECV until its consumer starts") {
    // rank 0: F0 [0,1] F1 [1,2] B0 [4,6] B1 [7,9]; rank 1: F0 [1,2] B0 [2,4] F1 [4,5] B1 [5,7]. A receive is issued one
    // compute action ahead: rank 1's at 0 s, and as B0 starts; rank 0's as F1 starts and as B0 starts.
    const Schedule schedule = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
    CostTable costs = whole_costs(2, 1, 2);
    costs.stages[0].activation_message_bytes = 5;
    costs.stages[1].gradient_message_bytes = 7;
    const Simulation result = simulate(schedule, costs);
    const auto kind = static_cast<std::size_t>(MemoryKind::kCommunication);
    CHECK(result.timeline.ranks[0].memory_by_kind[kind] == samples({{1, 7}, {2, 14}, {4, 7}, {7, 0}}));
    CHECK(result.timeline.ranks[1].memory_by_kind[kind] == samples({{0, 5}, {1, 0}, {2, 5}, {4, 0}}));
    // Besides, a byte of activation a chunk: two on rank 0 from 1 s on, one on rank 1.
    CHECK(result.peak_memory_bytes == std::vector<std::int64_t>{16, 6});
    CHECK(simulate(schedule, costs, {.record_timeline = false}).peak_memory_bytes == result.peak_memory_bytes);
  }

  TEST_CASE("a split backward frees a part at the end of I and the rest at the end of W") {
    const Schedule schedule = parse_schedule("0F0 0I0 0F1 0W0 0I1 0W1\n");
    const StageMemory memory{.forward_bytes = 10, .released_at_input_grad_bytes = 4};
    const Simulation result = simulate(schedule, with_memory(whole_costs(1, 1, 2), memory));
    CHECK(result.timeline.ranks[0].memory == samples({{0, 10}, {2, 16}, {4, 10}, {5, 6}, {6, 0}}));
    CHECK(result.peak_activations == std::vector<int>{2});  // released at W
  }

  TEST_CASE("recomputation holds the rest from R, or from the backward where it has no R") {
    const StageMemory memory{.forward_bytes = 1, .recompute_bytes = 50};
    const Simulation with_r =
        simulate(parse_schedule("0F0 0R0 0F1 0B0 0B1\n"), with_memory(whole_costs(1, 1, 2), memory));
    // F0 [0,1] R0 [1,2] F1 [2,3] B0 [3,5] B1 [5,7], which has no R
    CHECK(with_r.timeline.ranks[0].memory == samples({{0, 1}, {1, 51}, {2, 52}, {5, 51}, {7, 0}}));
  }

  TEST_CASE("gathered parameters are held from UNSHARD to RESHARD, however many parts are gathered") {
    CostTable costs = with_memory(whole_costs(1, 1, 2), {.unsharded_bytes = 7});
    costs.stages[0].segments[static_cast<std::size_t>(Op::kUnshard)] = {{Segment{.seconds = Seconds{1}}}};
    const Simulation result =
        simulate(parse_schedule("0UNSHARD 0UNSHARD/1 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD\n"), costs);
    // UNSHARDs [0,1] [1,2], F0 [2,3], UNSHARD [3,4], B0 [4,6]; at 3 released and gathered at once
    CHECK(result.timeline.ranks[0].memory == samples({{0, 7}, {6, 0}}));
  }

  TEST_CASE("a stage without backward holds an activation only while its forward runs") {
    const Simulation result = simulate(parse_schedule("0F0 0F1\n"), whole_costs(1, 1, 2));
    CHECK(result.peak_activations == std::vector<int>{1});
    CHECK(result.timeline.ranks[0].memory == samples({{0, 1}, {2, 0}}));
  }

  TEST_CASE("an offloaded activation is away between the end of OFFLOAD and the start of RELOAD") {
    CostTable costs = whole_costs(1, 1, 2);
    for (const Op op : {Op::kOffload, Op::kReload}) {
      costs.stages[0].segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = Seconds{1}}}};
    }
    const Simulation result = simulate(parse_schedule("0F0 0OFFLOAD0 0F1 0F2 0RELOAD0 0B0 0B1 0B2\n"), costs);
    // F0 [0,1] OFFLOAD [1,2] F1 [1,2] F2 [2,3] RELOAD [3,4] B0 [4,6]
    CHECK(result.timeline.ranks[0].memory == samples({{0, 1}, {1, 2}, {3, 3}, {6, 2}, {8, 1}, {10, 0}}));
  }

  TEST_CASE("PipeDream keeps p - r versions of the weights on rank r") {
    const int p = 4;
    const Simulation result =
        simulate(lowered("pipedream", p, 12), with_memory(whole_costs(p, 1, 2), {.parameter_bytes = 5}));
    for (int r = 0; r < p; ++r) CHECK(result.peak_memory_bytes[r] == 5 * (p - r));
  }

  TEST_CASE("vertical sync keeps the versions of micro-batches that are still to come") {
    // Rank 1 has stepped once when 1F1 comes with version 0 of rank 0, and keeps that version from its first step to
    // 1B1.
    const std::string_view order =
        "0F0 0F1 0B0 0OPTIMIZER_STEP 0B1 0OPTIMIZER_STEP\n1F0 1B0 1OPTIMIZER_STEP 1F1 1B1 1OPTIMIZER_STEP\n";
    Schedule schedule = lower(parse_schedule(order));
    const CostTable costs = with_memory(whole_costs(2, 1, 2), {.parameter_bytes = 5});
    schedule.weights = WeightPolicy::kStashed;
    CHECK(simulate(schedule, costs).peak_memory_bytes == std::vector<std::int64_t>{10, 5});
    schedule.weights = WeightPolicy::kVerticalSync;
    CHECK(simulate(schedule, costs).peak_memory_bytes == std::vector<std::int64_t>{10, 10});
    schedule.weights = WeightPolicy::kCurrent;  // which validate refuses for weights that change between micro-batches
    CHECK(simulate(schedule, costs, {.validate = false}).peak_memory_bytes == std::vector<std::int64_t>{5, 5});
  }

  TEST_CASE("two buffers are two versions, however deep the pipeline") {
    Schedule schedule = lower(parse_schedule(
        "0F0 0F1 0B0 0B1 0OPTIMIZER_STEP 0F2 0F3 0B2 0B3 0OPTIMIZER_STEP 0F4 0F5 0B4 0B5 0OPTIMIZER_STEP\n"));
    schedule.weights = WeightPolicy::kTwoBuffered;
    const Simulation result = simulate(schedule, with_memory(whole_costs(1, 1, 2), {.parameter_bytes = 5}));
    CHECK(result.peak_memory_bytes == std::vector<std::int64_t>{10});
    // Version 0 serves batches 0 and 1: from the first step, at 6, until 0B3 ends, at 12; then version 1 likewise.
    CHECK(result.timeline.ranks[0].memory == samples({{0, 5}, {6, 10}, {18, 5}}));
  }
}

TEST_SUITE("property") {
  TEST_CASE("the peaks of one pass over the steps are those of the samples, whatever the memory and the costs") {
    for (const Checkpoint checkpoint : {Checkpoint::kNever, Checkpoint::kExceptLast, Checkpoint::kAlways}) {
      for (const CatalogueEntry& entry : catalogue()) {
        if (entry.name == "bpipe" || entry.name.starts_with("pipedream")) continue;  // they move, or keep versions
        const Schedule schedule =
            lower(entry.make({.ranks = 4, .microbatches = 8, .chunks = entry.chunks}), {.checkpoint = checkpoint});
        const CompiledSchedule compiled = compile(schedule, Sends::kBuffered);
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          CostTable costs = random_costs(schedule, seed);
          std::mt19937_64 random(seed);
          const auto bytes = [&random] { return static_cast<std::int64_t>(random() % 100); };
          for (StageCosts& stage : costs.stages) {
            stage.memory = {.forward_bytes = 100 + bytes(),
                            .recompute_bytes = bytes(),
                            .released_at_input_grad_bytes = bytes(),
                            .forward_workspace_bytes = bytes(),
                            .backward_workspace_bytes = bytes()};
            // Actions that last nothing start and end at one moment, at which releases come first.
            for (auto& by_part : stage.segments) by_part[0][0].seconds *= static_cast<double>(random() % 2);
          }
          INFO(schedule.name, " seed ", seed);
          REQUIRE(holds_in_issue_order(schedule, compiled, costs));
          const Simulation sums = simulate(schedule, compiled, costs, false);
          const Simulation full = simulate(schedule, compiled, costs, true);
          REQUIRE(sums.peak_memory_bytes == full.peak_memory_bytes);
          REQUIRE(sums.peak_activations == full.peak_activations);
        }
      }
    }
  }
}

}  // namespace plumb::test
