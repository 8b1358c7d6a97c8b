// The replay loop on stages without numerics. A stage writes down the calls that it gets, and each of its tensors
// carries one number, so that a test sees which output became whose input.

#include "executor/replay/replay.h"

#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "executor/transport/in_process_transport.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {
namespace {

/// A stage whose forward adds 1 to its input and whose backward adds 100, so that a tensor counts the stages it went
/// through.
class CountingStage : public Stage {
 public:
  CountingStage(TensorPool& pool, bool is_first, bool is_last) : pool_(pool), is_first_(is_first), is_last_(is_last) {}

  void begin(std::int64_t) override {}
  Tensor forward(MicrobatchSlice of, Tensor input) override {
    if (of.microbatch == fails_at) throw SpecError("the stage is broken");
    note("F" + text(of));
    return is_last_ ? Tensor{} : number(input.empty() ? 1 : input.data()[0] + 1);
  }
  void recompute(MicrobatchSlice of) override { note("R" + text(of)); }
  Tensor backward(MicrobatchSlice of, Tensor gradient) override {
    note("B" + text(of));
    return after_backward(gradient);
  }
  Tensor input_grad(MicrobatchSlice of, Tensor gradient) override {
    note("I" + text(of));
    return after_backward(gradient);
  }
  void weight_grad(MicrobatchSlice of) override { note("W" + text(of)); }
  /// Hands out tensors with the micro-batch's number; put_activations notes the number that comes back.
  std::vector<Tensor> take_activations(MicrobatchSlice of) override {
    note("away" + text(of));
    std::vector<Tensor> activations;
    activations.push_back(number(static_cast<float>(of.microbatch)));
    return activations;
  }
  void put_activations(MicrobatchSlice of, std::vector<Tensor> activations) override {
    note(fmt::format("back{}={}", text(of), activations.at(0).data()[0]));
  }
  void watch_buckets(BucketHook complete) override { complete_ = std::move(complete); }
  GradientMeasure gradient_measure() const override { return {.square_sum = double(gradient_) * double(gradient_)}; }
  void optimizer_step(const StepScale& scale) override { note(fmt::format("step({})", gradient_ * scale.factor)); }
  std::vector<Collective> start_reduction(int) override { return {all_reduce({&gradient_, 1})}; }
  void finish_reduction() override {}
  std::vector<Collective> start_gather() override { return {all_reduce({&gathered_, 1})}; }
  void drop_gathered() override { note(fmt::format("drop({})", gathered_)); }
  std::vector<Collective> start_tied(ModelEnd) override { return {}; }
  std::span<float> tied_gradients(ModelEnd end) override {
    return end == ModelEnd::kEmbedding ? std::span<float>{&tied_first, 1} : std::span<float>{&tied_last, 1};
  }
  void finish_tied(ModelEnd) override {}
  std::int64_t input_elements(int) const override { return is_first_ ? 0 : 1; }
  std::int64_t output_elements(int) const override { return is_last_ ? 0 : 1; }

  std::string did;
  int fails_at = -1;
  float tied_first = 0, tied_last = 0;

 private:
  static std::string text(MicrobatchSlice of) {
    return of.slice == 0 ? std::to_string(of.microbatch) : fmt::format("{}/{}", of.microbatch, of.slice);
  }
  void note(const std::string& what) { did += (did.empty() ? "" : " ") + what; }
  Tensor number(float value) {
    Tensor tensor = pool_.take(1);
    tensor.data()[0] = value;
    return tensor;
  }
  Tensor after_backward(const Tensor& gradient) {
    const float value = (gradient.empty() ? 0 : gradient.data()[0]) + 100;
    gradient_ += value;
    if (complete_) std::exchange(complete_, {})(0);
    return is_first_ ? Tensor{} : number(value);
  }

  TensorPool& pool_;
  bool is_first_, is_last_;
  float gradient_ = 0, gathered_ = 1;
  BucketHook complete_;
};

struct ReplayOutcome {
  std::vector<std::string> did;         // [replica * stages + stage]
  std::vector<RankTimeline> timelines;  // [world rank]
  std::vector<std::string> errors;      // messages of the ranks that failed by themselves
  int aborted = 0;
  std::vector<std::pair<float, float>> tied;  // [replica * stages + stage]
};

struct Setup {
  int data = 1;
  Sends sends = Sends::kBuffered;
  std::vector<TiedStages> tied;
  int broken_stage = -1;
  int fails_at = 0;
};

ReplayOutcome replay_all(const Schedule& lowered_order, const Setup& setup = {}) {
  const ProcessGrid grid{.data = setup.data, .pipeline = static_cast<int>(lowered_order.ranks.size())};
  const ReplayPlan plan = plan_replay(lowered_order, grid, setup.tied);
  const int ranks = world_size(grid), stages = static_cast<int>(lowered_order.stages.size());
  const Clock clock = monotonic_clock();
  std::vector<TensorPool> pools(static_cast<std::size_t>(ranks)), host_pools(pools.size());
  InProcessOptions options{.ranks = ranks, .sends = setup.sends, .watchdog = Seconds{5}};
  for (TensorPool& pool : pools) options.pools.push_back(&pool);
  InProcessTransport transport(options, clock);
  std::vector<std::unique_ptr<CountingStage>> all;
  for (int replica = 0; replica < setup.data; ++replica)
    for (int s = 0; s < stages; ++s) {
      const int rank = world_rank_of(grid, {.data = replica, .pipeline = lowered_order.stages[s].rank});
      all.push_back(std::make_unique<CountingStage>(pools[rank], plan.neighbors.predecessor[s] < 0,
                                                    plan.neighbors.successor[s] < 0));
      all.back()->tied_first = 1;
      all.back()->tied_last = 10;
      if (s == setup.broken_stage) all.back()->fails_at = setup.fails_at;
    }
  ReplayOutcome outcome{.timelines = std::vector<RankTimeline>(static_cast<std::size_t>(ranks))};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const GridCoordinates place = coordinates_of(grid, rank);
      ReplayGroups groups = connect_groups(plan, transport, place, clock);
      ReplaySeat seat{.place = place,
                      .transport = &transport,
                      .groups = &groups,
                      .pool = &pools[rank],
                      .host_pool = &host_pools[rank],
                      .clock = clock};
      for (int s = 0; s < stages; ++s)
        seat.stages.push_back(lowered_order.stages[s].rank == place.pipeline ? all[place.data * stages + s].get()
                                                                             : nullptr);
      try {
        outcome.timelines[rank] = replay(plan, seat, SimTime{0});
      } catch (const RunAborted&) {
        const std::lock_guard lock(mutex);
        ++outcome.aborted;
      } catch (const RunError& error) {
        const std::lock_guard lock(mutex);
        outcome.errors.push_back(error.what());
        transport.abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& stage : all) {
    outcome.did.push_back(stage->did);
    outcome.tied.emplace_back(stage->tied_first, stage->tied_last);
  }
  return outcome;
}

Schedule lowered_order(const char* name, int ranks, int microbatches, int chunks = 1) {
  return lower(make_schedule(name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}));
}

}  // namespace

TEST_CASE("each rank does its list in order, and each tensor reaches the next stage") {
  // The last stage makes a gradient of 100 a micro-batch, the one before 200 (100 plus its input), the first 300.
  for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous}) {
    const ReplayOutcome outcome = replay_all(lowered_order("1f1b", 3, 3), {.sends = sends});
    CHECK(outcome.did[0] == "F0 F1 F2 B0 B1 B2 step(900)");
    CHECK(outcome.did[1] == "F0 F1 B0 F2 B1 B2 step(600)");
    CHECK(outcome.did[2] == "F0 B0 F1 B1 F2 B2 step(300)");
  }
}

TEST_CASE("stages of one rank hand their tensors over without messages") {
  const ReplayOutcome outcome = replay_all(lowered_order("interleaved", 1, 2, 3));
  CHECK(outcome.did[0].ends_with("step(600)"));
  CHECK(outcome.did[2].ends_with("step(200)"));
}

TEST_CASE("a split backward runs I and W where the list has them") {
  const ReplayOutcome outcome =
      replay_all(lower(parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1\n"
                                      "1F0 1I0 1F1 1I1 1W1 1W0\n")));
  CHECK(outcome.did[0] == "F0 F1 I0 I1 W0 W1 step(400)");
  CHECK(outcome.did[1] == "F0 I0 F1 I1 W1 W0 step(200)");
}

TEST_CASE("R runs where the list has it") {
  const ReplayOutcome outcome = replay_all(lower(parse_schedule("0F0 0R0 0B0\n")));
  CHECK(outcome.did[0] == "F0 R0 B0 step(100)");
}

TEST_CASE("slices run forth and back, each with messages of its own") {
  const ReplayOutcome outcome = replay_all(
      lower(parse_schedule("0F0 0F0/1 0F1 0B0/1 0B0 0F1/1 0B1/1 0B1\n1F0 1F0/1 1B0/1 1B0 1F1 1F1/1 1B1/1 1B1")));
  CHECK(outcome.did[0] == "F0 F0/1 F1 B0/1 B0 F1/1 B1/1 B1 step(800)");
  CHECK(outcome.did[1] == "F0 F0/1 B0/1 B0 F1 F1/1 B1/1 B1 step(400)");
}

TEST_CASE("activations leave the rank for the host or its partner and come back as they were") {
  const ReplayOutcome host =
      replay_all(lower(parse_schedule("0F0 0OFFLOAD0 0F1 0OFFLOAD1 0RELOAD1 0B1 0RELOAD0 0B0\n")));
  CHECK(host.did[0] == "F0 away0 F1 away1 back1=1 B1 back0=0 B0 step(200)");
  const ReplayOutcome partner =
      replay_all(lower(parse_schedule("0F0 0F1 0EVICT1 0B0 0LOAD1 0B1\n1F0 1B0 1F1 1B1\n")), {.data = 1});
  CHECK(partner.did[0] == "F0 F1 away1 B0 back1=1 B1 step(400)");
}

TEST_CASE("replicas sum their gradients before the optimizer step") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true}});
  const ReplayOutcome outcome = replay_all(schedule, {.data = 3});
  for (std::size_t replica = 0; replica < 3; ++replica) {
    CHECK(outcome.did[2 * replica].ends_with("step(1200)"));
    CHECK(outcome.did[2 * replica + 1].ends_with("step(600)"));
  }
}

TEST_CASE("UNSHARD and RESHARD do nothing in groups of one and are refused over replicas that share nothing") {
  const Schedule schedule =
      lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), {.data = {.enabled = true, .zero = 3}});
  CHECK(replay_all(schedule).did[1] == "F0 B0 F1 B1 step(200)");
  CHECK_THROWS_WITH_AS(replay_all(schedule, {.data = 2}), doctest::Contains("lower it with ZeRO stage 0"),
                       ScheduleError);
}

TEST_CASE("both copies of a tied table get the sum of their gradients, on one rank and on two") {
  const ReplayOutcome apart = replay_all(lowered_order("1f1b", 2, 2), {.tied = {{.embedding = 0, .head = 1}}});
  CHECK(apart.tied[0].first == 11);
  CHECK(apart.tied[1].second == 11);
  const ReplayOutcome together =
      replay_all(lowered_order("interleaved", 1, 2, 2), {.tied = {{.embedding = 0, .head = 1}}});
  CHECK(together.tied[0].first == 11);
  CHECK(together.tied[1].second == 11);
  const ReplayOutcome one_stage = replay_all(lowered_order("naive", 1, 2), {.tied = {{.embedding = 0, .head = 0}}});
  CHECK(one_stage.tied[0].first == 11);
  CHECK(one_stage.tied[0].second == 11);
}

TEST_CASE("a rank that fails stops all others, and one message names rank, action and reason") {
  for (const int broken : {0, 1, 2}) {
    const ReplayOutcome outcome = replay_all(lowered_order("1f1b", 3, 4), {.broken_stage = broken, .fails_at = 1});
    REQUIRE(outcome.errors.size() == 1);
    CHECK(outcome.errors[0].starts_with(fmt::format("rank {}, action ", broken)));
    CHECK(outcome.errors[0].ends_with(fmt::format("({}F1): the stage is broken", broken)));
    CHECK(outcome.aborted == 2);
  }
}

TEST_CASE("two neighbours of a list that change places are refused, or run in their new order") {
  const Schedule schedule = lowered_order("1f1b", 2, 3);
  int refused = 0, replayed = 0;
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i + 1 < schedule.ranks[rank].size(); ++i) {
      Schedule changed = schedule;
      std::swap(changed.ranks[rank][i], changed.ranks[rank][i + 1]);
      CAPTURE(to_text(changed));
      try {
        const ReplayOutcome outcome = replay_all(changed);
        CHECK(outcome.errors.empty());
        for (std::size_t position = 0; position < changed.ranks[rank].size(); ++position)
          CHECK(outcome.timelines[rank].spans[position].action == changed.ranks[rank][position]);
        ++replayed;
      } catch (const ScheduleError&) {
        ++refused;
      }
    }
  CHECK(refused > 0);
  CHECK(replayed > 0);
}

TEST_CASE("a list without one of its actions is refused") {
  const Schedule schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}), {.data = {.enabled = true}});
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      Schedule changed = schedule;
      changed.ranks[rank].erase(changed.ranks[rank].begin() + static_cast<std::ptrdiff_t>(i));
      CAPTURE(to_text(schedule.ranks[rank][i]));
      CHECK_THROWS_AS(plan_replay(changed, ProcessGrid{.data = 2, .pipeline = 2}), ScheduleError);
    }
}

TEST_CASE("another placement is refused, unless the lists move with it") {
  Schedule schedule = lowered_order("1f1b", 2, 3);
  std::swap(schedule.stages[0].rank, schedule.stages[1].rank);
  CHECK_THROWS_AS(replay_all(schedule), ScheduleError);
  std::swap(schedule.ranks[0], schedule.ranks[1]);
  const ReplayOutcome outcome = replay_all(schedule);
  CHECK(outcome.timelines[0].spans[0].action.stage == 1);
  CHECK(outcome.did[0].ends_with("step(600)"));
}

TEST_CASE("what the loop does not do is refused with a reason") {
  const auto refusal = [](const Schedule& schedule, const ProcessGrid& grid) -> std::string {
    try {
      plan_replay(schedule, grid);
    } catch (const ScheduleError& error) {
      return error.what();
    }
    return "";
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const Schedule compute_order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  CHECK(contains(refusal(compute_order, {.pipeline = 2}), "lower it first"));
  CHECK(contains(refusal(lower(compute_order), {.pipeline = 3}), "for 2 pipeline ranks and the grid has 3"));
  CHECK(contains(refusal(lower(compute_order), {.data = 2, .pipeline = 2}), "without a REDUCE_GRAD"));
}

TEST_CASE("memory in the timeline is the pool's, before and after each action") {
  const ReplayOutcome outcome = replay_all(lowered_order("gpipe", 2, 3));
  for (const RankTimeline& timeline : outcome.timelines) {
    REQUIRE(!timeline.memory.empty());
    CHECK(timeline.memory.front().bytes == 0);
    CHECK(timeline.memory.back().bytes == 0);
  }
}

}  // namespace plumb::test
