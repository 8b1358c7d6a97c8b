// Injected faults of ranks that are threads: every survivor stops within the watchdog's time, and one sentence names
// rank, action and peer.

#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include <doctest/doctest.h>

#include "executor/timed/run_timed.h"
#include "executor/training/run.h"
#include "simulator/simulate.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr Seconds kWatchdog{0.5};
constexpr Seconds kSlack{5};  // slack for a machine that does something else meanwhile

/// Returns 1F1B on 3 ranks with 4 micro-batches and 3 steps.
RunSpec watched_spec() {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
  spec.steps = 3;
  spec.watchdog = kWatchdog;
  return spec;
}

/// Returns a hook that does `fault` to the n-th activation that leaves rank 1, which sends 4 a step.
InTransit at_message(int n, std::function<void(std::span<float>)> fault) {
  return [count = std::make_shared<int>(0), n, fault = std::move(fault)](const TransportChannel& channel,
                                                                         const MessageTag&, std::span<float> values) {
    if (channel.source == 1 && channel.kind == MessageKind::kActivation && ++*count == n) fault(values);
  };
}

void vanish(std::span<float>) {
  throw RunAborted("gone without a word");
}

void stall(std::span<float>) {
  std::this_thread::sleep_for(3 * kWatchdog);
}

void corrupt(std::span<float> values) {
  values[values.size() / 2] += 1;
}

struct Failed {
  std::string said;
  Seconds took{0};
  Timeline interrupted;
  std::shared_ptr<const TrainingState> checkpoint;
};

Failed fail(const RunSpec& spec, InTransit in_transit) {
  Failed failed;
  RunOptions options{.checkpoint_every = 1};
  options.checkpoint = [&](const TrainingState& state) { failed.checkpoint = std::make_shared<TrainingState>(state); };
  options.interrupted = [&](const Timeline& timeline) { failed.interrupted = timeline; };
  options.threads.in_transit = std::move(in_transit);
  const auto start = std::chrono::steady_clock::now();
  try {
    run(spec, options);
  } catch (const RunError& error) {
    failed.said = error.what();
  }
  failed.took = std::chrono::steady_clock::now() - start;
  return failed;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TimedSpec timed_spec() {
  TimedSpec spec{.schedule = lower(make_schedule("1f1b", {.ranks = 3, .microbatches = 4})),
                 .costs = chunk_cost_table(3, {.forward = {Seconds{1e-3}},
                                               .input_grad = {Seconds{1e-3}},
                                               .weight_grad = {Seconds{1e-3}},
                                               .hop_latency = Seconds{1e-4}}),
                 .grid = {.pipeline = 3},
                 .steps = 3,
                 .watchdog = kWatchdog};
  for (StageCosts& stage : spec.costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 64;
  return spec;
}

}  // namespace

TEST_CASE("a rank that is killed is missed by the one that waits for it, and training goes on from its checkpoint") {
  const RunSpec spec = watched_spec();
  const Failed failed = fail(spec, at_message(4 + 3, vanish));  // a message of the second step
  CHECK(contains(failed.said, "nothing moved for 0.5 s while it waited for"));
  CHECK(contains(failed.said, "rank 1"));
  CHECK(contains(failed.said, ", action "));
  CHECK(failed.took < kWatchdog + kSlack);
  REQUIRE(failed.checkpoint != nullptr);
  CHECK(failed.checkpoint->steps == 1);
  RunSpec rest = spec;
  rest.resume = failed.checkpoint;
  const std::vector<double> losses = run(spec).losses;
  CHECK(run(rest).losses == std::vector<double>(losses.begin() + 1, losses.end()));
}

TEST_CASE("a rank that stalls is missed within the watchdog's time") {
  const Failed failed = fail(watched_spec(), at_message(2, stall));
  CHECK(contains(failed.said, "nothing moved for 0.5 s while it waited for"));
  CHECK(contains(failed.said, "from rank 1 to rank "));
  CHECK(failed.took < 3 * kWatchdog + kSlack);
}

TEST_CASE("a message that is changed on its way is told from a whole one by whoever delivers it") {
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    RunSpec spec = watched_spec();
    spec.sends = sends;
    const Failed failed = fail(spec, at_message(5, corrupt));
    CHECK(contains(failed.said, "the activation of stage 1, micro-batch 0, from rank 1 to rank 2"));
    CHECK(contains(failed.said, "values are not those that were sent"));
    CHECK(contains(failed.said, ", action "));
    CHECK(failed.took < kSlack);
  }
}

TEST_CASE("a loss that is no number ends the run where it is computed") {
  RunSpec spec = watched_spec();
  spec.optimizer = Sgd{.learning_rate = 1e38F};
  spec.steps = 10;
  const Failed failed = fail(spec, {});
  CHECK(contains(failed.said, "rank 2, action "));
  CHECK(contains(failed.said, "the loss of micro-batch "));
  REQUIRE(failed.checkpoint != nullptr);
  CHECK(failed.checkpoint->steps >= 1);
}

TEST_CASE("what was done of an interrupted step is told, rank by rank") {
  const Failed failed = fail(watched_spec(), at_message(2, corrupt));
  REQUIRE(failed.interrupted.ranks.size() == 3);
  // Rank 0 has done the forward of micro-batch 0, without which rank 1 would have had nothing to send.
  REQUIRE_FALSE(failed.interrupted.ranks[0].spans.empty());
  CHECK(failed.interrupted.ranks[0].spans.front().action.op == Op::kForward);
  for (const RankTimeline& rank : failed.interrupted.ranks)
    for (const Span& span : rank.spans) CHECK(span.end >= span.start);
}

TEST_CASE("a rank that hangs for good does not keep the others' reason back") {
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = 2, .watchdog = kWatchdog}, clock);
  std::string reason;
  const RankThreadsOptions options{.stuck = [&](const std::string& said) { reason = said; }};
  const auto work = [&](int rank) {
    if (rank == 0) throw RunError("rank 0 has failed");
    std::this_thread::sleep_for(3 * kWatchdog);  // not in the transport: no abort reaches it
  };
  CHECK_THROWS_WITH_AS(run_rank_threads(2, transport, kWatchdog, options, work), "rank 0 has failed", RunError);
  CHECK(reason == "rank 0 has failed");
}

TEST_CASE("the same faults of a replay by the clock") {
  const TimedSpec spec = timed_spec();
  const auto said = [&](InTransit in_transit, Timeline& interrupted) -> std::string {
    TimedOptions options{.interrupted = [&](const Timeline& timeline) { interrupted = timeline; }};
    options.threads.in_transit = std::move(in_transit);
    try {
      run_timed(spec, options);
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  };
  Timeline interrupted;
  CHECK(contains(said(at_message(6, vanish), interrupted), "nothing moved for 0.5 s while it waited for"));
  CHECK_FALSE(interrupted.ranks[0].spans.empty());
  CHECK(contains(said(at_message(3, stall), interrupted), "from rank 1 to rank "));
  CHECK(contains(said(at_message(3, corrupt), interrupted), "values are not those that were sent"));
}

TEST_CASE("more ranks than a machine has threads for are refused before any starts") {
  require_threads({.tensor = 4, .data = 16, .pipeline = 16});
  CHECK_THROWS_WITH_AS(
      require_threads({.data = 1 << 30, .pipeline = 4}),
      "4294967296 ranks are more than the 1024 threads that one machine runs: take fewer ranks or replicas", SpecError);
}

}  // namespace plumb::test
