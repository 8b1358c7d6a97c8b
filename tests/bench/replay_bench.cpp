// Measures the cost of the replay loop: training steps by replay() alternate with the same stages called by hand.
//
//   build/tests/bench/replay_bench [HIDDEN PAIRS]
//
// There are two figures for each size, both in processor time of the ranks' threads. "Against a loop by hand" is the
// median over pairs of steps, with the interval in which the median lies; the order of a pair changes from one to the
// next, and other work on the machine widens the interval. "Outside the stages" is the part of the replayed steps that
// is not inside a stage's methods. The timing of their calls counts as outside. It needs no second run; with two ranks
// it includes the messages, their sums, wake-ups and waits.

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "executor/replay/replay.h"
#include "executor/stages/host/cpu_stage.h"
#include "executor/transport/in_process_transport.h"
#include "kernels/cpu/products/gemm.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tests/bench/stopwatch.h"
#include "traces/compare/median_interval.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr int kMicrobatches = 8;
constexpr std::int64_t kSequence = 64, kVocab = 256;

/// A stage that adds up the time inside it.
class WatchedStage : public Stage {
 public:
  explicit WatchedStage(Stage& stage) : stage_(stage) {}

  void begin(std::int64_t step) override { stage_.begin(step); }
  Tensor forward(MicrobatchSlice of, Tensor input) override {
    return inside([&] { return stage_.forward(of, std::move(input)); });
  }
  Tensor backward(MicrobatchSlice of, Tensor gradient) override {
    return inside([&] { return stage_.backward(of, std::move(gradient)); });
  }
  void optimizer_step(const StepScale& scale) override {
    inside([&] {
      stage_.optimizer_step(scale);
      return 0;
    });
  }
  std::int64_t input_elements(int slice) const override { return stage_.input_elements(slice); }
  std::int64_t output_elements(int slice) const override { return stage_.output_elements(slice); }

  // 1F1B without replicas does not call these.
  void recompute(MicrobatchSlice) override { std::abort(); }
  Tensor input_grad(MicrobatchSlice, Tensor) override { std::abort(); }
  void weight_grad(MicrobatchSlice) override { std::abort(); }
  std::vector<Tensor> take_activations(MicrobatchSlice) override { std::abort(); }
  void put_activations(MicrobatchSlice, std::vector<Tensor>) override { std::abort(); }
  void watch_buckets(BucketHook) override { std::abort(); }
  GradientMeasure gradient_measure() const override { std::abort(); }
  std::vector<Collective> start_reduction(int) override { std::abort(); }
  void finish_reduction() override { std::abort(); }
  std::vector<Collective> start_gather() override { std::abort(); }
  void drop_gathered() override { std::abort(); }
  std::vector<Collective> start_tied(ModelEnd) override { std::abort(); }
  std::span<float> tied_gradients(ModelEnd) override { std::abort(); }
  void finish_tied(ModelEnd) override { std::abort(); }

  double inside_seconds = 0;
  int calls = 0;

 private:
  template <class Work>
  std::invoke_result_t<Work> inside(Work work) {
    const double start = thread_seconds();
    auto result = work();
    inside_seconds += thread_seconds() - start;
    ++calls;
    return result;
  }

  Stage& stage_;
};

/// The stages of a small transformer with four blocks, one stage for each rank, and the objects that their replay
/// needs.
struct Bench {
  Bench(std::int64_t hidden, int ranks)
      : plan(plan_replay(lower(make_schedule("1f1b", {.ranks = ranks, .microbatches = kMicrobatches})),
                         ProcessGrid{.pipeline = ranks})),
        transport({.ranks = ranks}, clock) {
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(31 * i);
    for (int rank = 0; rank < ranks; ++rank) {
      pools.push_back(std::make_unique<TensorPool>());
      stages.push_back(std::make_unique<CpuStage>(
          CpuStageOptions{.layers = layers_of(hidden, rank, ranks),
                          .first_layer = rank == 0 ? 0 : 1 + rank * 4 / ranks,
                          .microbatch = 1,
                          .sequence = kSequence,
                          .seed = 1,
                          .text = text,
                          .samples = &no_samples,
                          .weight_versions = std::vector<int>(kMicrobatches, 0),
                          .gradient_scales = std::vector<float>(kMicrobatches, 1.0F / (kMicrobatches * kSequence))},
          *pools.back()));
    }
  }

  static std::vector<Layer> layers_of(std::int64_t hidden, int rank, int ranks) {
    std::vector<Layer> layers;
    if (rank == 0) layers.emplace_back(EmbeddingLayer{.vocab = kVocab, .hidden = hidden});
    for (int i = 0; i < 4 / ranks; ++i)
      layers.emplace_back(TransformerLayer{
          .hidden = hidden, .heads = 4, .kv_heads = 4, .head_size = hidden / 4, .ffn = 4 * hidden, .rotary_size = 8});
    if (rank == ranks - 1) layers.emplace_back(HeadLayer{.vocab = kVocab, .hidden = hidden});
    return layers;
  }

  ReplaySeat seat(int rank, Stage& stage, ReplayGroups& groups) {
    ReplaySeat seat{.place = {.pipeline = rank},
                    .stages = std::vector<Stage*>(stages.size()),
                    .transport = &transport,
                    .groups = &groups,
                    .pool = pools[static_cast<std::size_t>(rank)].get(),
                    .host_pool = &host_pool,
                    .clock = clock};
    seat.stages[static_cast<std::size_t>(rank)] = &stage;
    return seat;
  }

  const ReplayPlan plan;
  const Clock clock = monotonic_clock();
  const SampleData no_samples;
  std::vector<std::uint8_t> text = std::vector<std::uint8_t>(4096);
  std::vector<std::unique_ptr<TensorPool>> pools;
  TensorPool host_pool;
  std::vector<std::unique_ptr<CpuStage>> stages;
  InProcessTransport transport;
};

double seconds_of(const std::function<void()>& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

[[gnu::noinline]] void step_by_hand(CpuStage& stage) {
  for (int i = 0; i < kMicrobatches; ++i) {
    stage.forward({i}, {});
    stage.backward({i}, {});
  }
  stage.optimizer_step({});
}

[[gnu::noinline]] void step_by_replay(const ReplayPlan& plan, const ReplaySeat& seat, const Clock& clock) {
  replay(plan, seat, clock());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

MedianInterval interval_of(const std::vector<double>& ratios) {
  std::vector<SimTime> times;
  for (const double ratio : ratios) times.push_back(to_sim_time(Seconds{ratio}));
  return median_interval(std::move(times));
}

struct Outside {
  double ratio = 0;    // share of the step's processor time
  double seconds = 0;  // time for each call of a stage
};

/// Returns the figures over `steps` replays on all ranks at once, after one replay that is not counted.
Outside outside_the_stages(std::int64_t hidden, int ranks, int steps) {
  Bench bench(hidden, ranks);
  std::vector<double> all(static_cast<std::size_t>(ranks)), inside(all);
  std::vector<int> calls(static_cast<std::size_t>(ranks));
  std::barrier together(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      WatchedStage stage(*bench.stages[index]);
      ReplayGroups groups = connect_groups(bench.plan, bench.transport, {.pipeline = rank}, bench.clock);
      const ReplaySeat seat = bench.seat(rank, stage, groups);
      for (int step = 0; step <= steps; ++step) {
        stage.begin(step);
        together.arrive_and_wait();
        if (step == 1) stage.inside_seconds = all[index] = 0, stage.calls = 0;
        all[index] += seconds_of([&] { step_by_replay(bench.plan, seat, bench.clock); });
      }
      inside[index] = stage.inside_seconds;
      calls[index] = stage.calls;
    });
  for (std::thread& thread : threads) thread.join();
  double whole = 0, within = 0;
  int called = 0;
  for (std::size_t i = 0; i < all.size(); ++i) whole += all[i], within += inside[i], called += calls[i];
  return {(whole - within) / whole, (whole - within) / called};
}

void measure(std::int64_t hidden, int pairs) {
  Bench bench(hidden, 1);
  CpuStage& stage = *bench.stages[0];
  ReplayGroups groups = connect_groups(bench.plan, bench.transport, {}, bench.clock);
  const ReplaySeat seat = bench.seat(0, stage, groups);
  std::vector<double> by_hand, ratios;
  for (int pair = 0; pair <= pairs; ++pair) {
    double replayed = 0, hand = 0;
    for (const bool replays : {pair % 2 == 0, pair % 2 != 0}) {
      stage.begin(pair);
      if (replays)
        replayed = seconds_of([&] { step_by_replay(bench.plan, seat, bench.clock); });
      else
        hand = seconds_of([&] { step_by_hand(stage); });
    }
    if (pair == 0) continue;
    by_hand.push_back(hand);
    ratios.push_back(replayed / hand);
  }
  const MedianInterval interval = interval_of(ratios);
  const auto percent = [](SimTime ratio) { return 100 * (to_seconds(ratio).count() - 1); };
  const Outside one = outside_the_stages(hidden, 1, pairs), two = outside_the_stages(hidden, 2, pairs);
  std::printf("%6lld %9.2f %9.0f %+8.2f (%+.2f to %+.2f) %% %10.3f %% %6.1f us %10.3f %% %6.1f us\n",
              static_cast<long long>(hidden), 1e3 * median(by_hand), 1e6 * median(by_hand) / (2 * kMicrobatches + 1),
              100 * (median(ratios) - 1), percent(interval.low), percent(interval.high), 100 * one.ratio,
              1e6 * one.seconds, 100 * two.ratio, 1e6 * two.seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  use_one_blas_thread();
  std::printf("1f1b, %d micro-batches of %lld tokens, 4 layers; processor time\n", kMicrobatches,
              static_cast<long long>(kSequence));
  std::printf("%6s %9s %9s %30s %23s %23s\n", "", "by hand,", "an action,",
              "against a loop by hand:", "outside the stage:", "outside the stages:");
  std::printf("%6s %9s %9s %30s %23s %23s\n", "hidden", "ms", "us", "median of pairs (95 %)", "of a step, an action",
              "two ranks, an action");
  if (count == 3) {
    measure(std::atoll(arguments[1]), std::atoi(arguments[2]));
    return 0;
  }
  measure(32, 200);
  measure(64, 100);
  measure(128, 40);
  measure(256, 20);
}
