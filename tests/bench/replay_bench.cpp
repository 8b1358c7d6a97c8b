// What the replay loop costs: a training step of one rank by replay() against the same stage called by hand.
//
//   build/tests/bench/replay_bench

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "executor/cpu/stage.h"
#include "executor/in_process_transport.h"
#include "executor/replay.h"
#include "kernels/cpu/gemm.h"
#include "schedules/generators/catalogue.h"
#include "schedules/lower.h"

using namespace plumb;

namespace {

constexpr int kMicrobatches = 8;
constexpr int kSteps = 21;
constexpr std::int64_t kSequence = 64, kVocab = 256;

std::vector<Layer> model(std::int64_t hidden) {
  const TransformerLayer block{
      .hidden = hidden, .heads = 4, .kv_heads = 4, .head_size = hidden / 4, .ffn = 4 * hidden, .rotary_size = 8};
  return {EmbeddingLayer{.vocab = kVocab, .hidden = hidden}, block, block, block, block,
          HeadLayer{.vocab = kVocab, .hidden = hidden}};
}

/// Processor time of this thread, which does all the work: what else the machine does is not in it.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(std::int64_t hidden) {
  std::vector<std::uint8_t> text(4096);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(31 * i);
  const ReplayPlan plan = plan_replay(lower(make_schedule("1f1b", {.ranks = 1, .microbatches = kMicrobatches})), {});
  TensorPool pool, host_pool;
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = 1}, clock);
  const SampleData no_samples;
  CpuStage stage({.layers = model(hidden),
                  .microbatch = 1,
                  .sequence = kSequence,
                  .seed = 1,
                  .text = text,
                  .samples = &no_samples,
                  .weight_versions = std::vector<int>(kMicrobatches, 0),
                  .gradient_scales = std::vector<float>(kMicrobatches, 1.0F / (kMicrobatches * kSequence))},
                 pool);
  ReplayGroups groups = connect_groups(plan, transport, {}, clock);
  const ReplaySeat seat{.stages = {&stage},
                        .transport = &transport,
                        .groups = &groups,
                        .pool = &pool,
                        .host_pool = &host_pool,
                        .clock = clock};
  std::vector<double> replayed, by_hand, ratios;
  for (int step = 0; step < kSteps; ++step) {  // by turns, so that both see the machine as it is
    stage.begin(step);
    const double start = processor_seconds();
    replay(plan, seat, clock());
    const double middle = processor_seconds();
    stage.begin(step);
    const double second = processor_seconds();
    for (int i = 0; i < kMicrobatches; ++i) {
      stage.forward({i}, {});
      stage.backward({i}, {});
    }
    stage.optimizer_step();
    const double end = processor_seconds();
    if (step == 0) continue;
    replayed.push_back(middle - start);
    by_hand.push_back(end - second);
    ratios.push_back(replayed.back() / by_hand.back());
  }
  std::printf("%6lld %12.3f %12.3f %+12.3f %%\n", static_cast<long long>(hidden), 1e3 * median(by_hand),
              1e3 * median(replayed), 100 * (median(ratios) - 1));
  std::fflush(stdout);
}

}  // namespace

int main() {
  use_one_blas_thread();
  std::printf("one rank, %d micro-batches of %lld tokens, 4 layers; medians of %d steps by turns, processor time\n",
              kMicrobatches, static_cast<long long>(kSequence), kSteps - 1);
  std::printf("%6s %12s %12s %12s\n", "hidden", "by hand, ms", "replay, ms", "overhead");
  for (const std::int64_t hidden : {32, 64, 128, 256}) measure(hidden);
}
