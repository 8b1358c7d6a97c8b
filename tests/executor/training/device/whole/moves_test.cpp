// Activations that move out of a rank's arena and back: no number changes, and the arenas are smaller.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "executor/program/device/plan_device.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec two_steps(RunSpec spec) {
  spec.steps = 2;
  return spec;
}

std::ptrdiff_t count_of(const RunSpec& spec, Op op) {
  std::ptrdiff_t count = 0;
  for (const std::vector<Action>& actions : spec.schedule.ranks) count += std::ranges::count(actions, op, &Action::op);
  return count;
}

RunSpec gpipe(std::optional<int> kept, int ranks = 3) {
  const Schedule order = make_schedule("gpipe", {.ranks = ranks, .microbatches = 9});
  return two_steps(spec_of_lowered(llama_model(7), kept ? lower(order, {.offload = *kept}) : lower(order)));
}

}  // namespace

TEST_CASE("a device that offloads activations has the same bits, in a smaller arena") {
  const RunResult all = on_host(gpipe({}));
  CHECK(all.peak_host_bytes == std::vector<std::int64_t>{0, 0, 0});
  std::vector<RunResult> runs;
  for (const int kept : {1, 2, 3, 5}) {
    CAPTURE(kept);
    runs.push_back(on_host(gpipe(kept), 7));
    CHECK(runs.back().losses == all.losses);
    CHECK(runs.back().weights == all.weights);
    CHECK(runs.back().gradients == all.gradients);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(runs.back().peak_memory_bytes[rank] < all.peak_memory_bytes[rank]);
      CHECK(runs.back().peak_host_bytes[rank] > 0);
    }
  }
  // Each micro-batch more that stays is a place more in the arena and one less on the host.
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const std::int64_t each = runs[0].peak_host_bytes[rank] / 8;
    CHECK(runs[0].peak_host_bytes[rank] == 8 * each);
    CHECK(runs[1].peak_host_bytes[rank] == 7 * each);
    CHECK(runs[3].peak_host_bytes[rank] == 4 * each);
    const auto check_more = [&](std::size_t run, std::size_t other, std::int64_t places) {
      const std::int64_t more = runs[run].peak_memory_bytes[rank] - runs[other].peak_memory_bytes[rank];
      CHECK(std::abs(more - places * each) <= places * 2 * kArenaAlignment);  // of a micro-batch's two buffers
    };
    check_more(1, 0, 1);
    check_more(2, 1, 1);
    check_more(3, 1, 3);
  }
}

TEST_CASE("every synchronous schedule offloads on a device without changing a bit") {
  const std::vector<Layer> model = llama_model(6);
  int schedules = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || entry.name == "bpipe" || entry.takes_slices || !entry.unpriced.empty())
      continue;
    const Schedule order =
        make_schedule(entry.name, {.ranks = 2, .microbatches = 4, .chunks = entry.takes_chunks ? 2 : entry.chunks});
    if (is_asynchronous(order)) continue;
    const std::vector<bool> copied = stages_with_copies(order);
    if (std::ranges::find(copied, true) != copied.end()) continue;
    CAPTURE(entry.name);
    const RunSpec spec = spec_of_lowered(model, lower(order, {.offload = 1}));
    CHECK(on_host(spec, 11).weights == on_host(spec_of(model, order)).weights);
    schedules += count_of(spec, Op::kOffload) > 0 ? 1 : 0;
  }
  CHECK(schedules >= 8);
}

TEST_CASE("BPipe on a device has 1F1B's bits, though activations visit other ranks") {
  const std::vector<Layer> model = llama_model(4);
  const RunResult plain = on_host(two_steps(spec_of(model, make_schedule("1f1b", {.ranks = 4, .microbatches = 8}))));
  RunSpec spec = two_steps(spec_of(model, make_schedule("bpipe", {.ranks = 4, .microbatches = 8})));
  REQUIRE(count_of(spec, Op::kEvict) > 0);
  const RunResult moved = on_host(spec);
  CHECK(moved.losses == plain.losses);
  CHECK(moved.weights == plain.weights);
  for (const unsigned seed : {1U, 2U, 3U}) CHECK(on_host(spec, seed).weights == plain.weights);
  CHECK(moved.peak_memory_bytes.front() < plain.peak_memory_bytes.front());
  CHECK(moved.peak_host_bytes == std::vector<std::int64_t>(4, 0));
  spec.rebuild = Recompute::kSelective;
  CHECK(on_host(spec, 4).weights == plain.weights);
}

TEST_CASE("moves beside replicas, recomputation of some, 16 bits and sharded weights change no bit") {
  const std::vector<Layer> model = llama_model(4);
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 5});
  const auto check_same = [&](const LoweringOptions& plain, const auto& change) {
    LoweringOptions offloading = plain;
    offloading.offload = 1;
    RunSpec stays = two_steps(spec_of_lowered(model, lower(order, plain)));
    RunSpec moves = two_steps(spec_of_lowered(model, lower(order, offloading)));
    change(stays);
    change(moves);
    REQUIRE(count_of(moves, Op::kOffload) > 0);
    const RunResult expected = on_host(stays), result = on_host(moves, 9);
    CHECK(result.losses == expected.losses);
    CHECK(result.weights == expected.weights);
  };
  check_same({.data = {.enabled = true}}, [](RunSpec& spec) { spec.grid.data = 2; });
  check_same({.data = {.enabled = true, .zero = 3}}, [](RunSpec& spec) {
    spec.grid.data = 2;
    spec.zero = 3;
  });
  check_same({.checkpoint = Checkpoint::kExceptLast}, [](RunSpec& spec) {
    spec.rebuild = Recompute::kStage;
    spec.rebuild_which = RebuildWhich::kListed;
  });
  check_same({}, [](RunSpec& spec) { spec.half = HalfFormat::kBf16; });
}

TEST_CASE("the timeline of a device shows when activations moved") {
  const RunResult result = on_host(gpipe(2));
  const RankTimeline& rank = result.timelines.front().ranks[1];
  const auto count = [&](Op op) {
    return std::ranges::count_if(rank.spans, [&](const Span& span) { return span.action.op == op; });
  };
  CHECK(count(Op::kOffload) == 7);
  CHECK(count(Op::kReload) == 7);
  for (const Span& away : rank.spans) {
    if (away.action.op != Op::kOffload) continue;
    const auto back = std::ranges::find_if(rank.spans, [&](const Span& span) {
      return span.action.op == Op::kReload && span.action.microbatch == away.action.microbatch;
    });
    REQUIRE(back != rank.spans.end());
    CHECK(back->start >= away.end);
  }
}

TEST_CASE("ranks on devices of their own offload, and evict nothing") {
  const RunSpec spec = spec_of(llama_model(4), make_schedule("bpipe", {.ranks = 4, .microbatches = 8}));
  HostMachine machine;
  CHECK_THROWS_WITH_AS(run_device_rank(spec, 0, machine, {}), doctest::Contains("activations that are evicted"),
                       SpecError);
}

}  // namespace plumb::test
