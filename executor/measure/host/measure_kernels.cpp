#include "executor/measure/host/measure_kernels.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>

#include "executor/measure/host/kernel_operands.h"

namespace plumb { inline namespace executor {
namespace {

constexpr Seconds kShortestRun{50e-6};      // a hundred times the cost of reading the processor time
constexpr double kKernelBudgetShare = 0.1;  // share of the time left that one call's repeats may take
constexpr int kLeastKernelRepeats = 3;
constexpr int kMostKernelRepeats = 25;
constexpr int kRounds = 8;  // rounds over which the repeats are spread

Seconds clock_time() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

/// Returns how long this thread has had a processor.
Seconds processor_time() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Seconds{static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

using ThreadClock = Seconds (*)();

/// Returns the processor time's clock where every busy rank can have a core, otherwise the wall clock.
ThreadClock clock_for(int busy_ranks) {
  return busy_ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? processor_time : clock_time;
}

/// Returns the time of one call, on renewed operands.
Seconds time_run(const KernelCall& call, int calls, KernelOperands& with, ThreadClock clock) {
  with.renew();
  const Seconds start = clock();
  for (int i = 0; i < calls; ++i) call_kernel(call, with);
  return (clock() - start) / calls;
}

/// Returns the work by which calls of one kind are ordered and extrapolated.
double work_of(const KernelCall& call) {
  return call.flops + call.elements_moved;
}

/// A call that is measured, how often it is made, and its times so far.
struct Measured {
  const KernelCall* call = nullptr;
  int repeats = 0;  // repeats of all rounds, on each rank
  int calls = 1;    // calls of each repeat
  std::vector<Seconds> times;
};

class KernelBench {
 public:
  KernelBench(std::vector<KernelLadder> ladders, int busy_ranks)
      : ladders_(std::move(ladders)), clock_(clock_for(busy_ranks)) {
    for (int rank = 0; rank < busy_ranks; ++rank) operands_.push_back(std::make_unique<KernelOperands>());
    for (KernelLadder& ladder : ladders_) std::ranges::stable_sort(ladder.calls, {}, work_of);
  }

  std::vector<KernelSample> run() {
    for (const KernelLadder& ladder : ladders_) first_round(ladder);
    for (int round = 1; round < kRounds; ++round)
      for (Measured& measured : measured_) time_on_all(measured, round);
    std::vector<KernelSample> samples;
    for (Measured& measured : measured_) samples.push_back(sample_of(measured));
    return samples;
  }

 private:
  /// Decides which calls are measured, and measures them for the first time.
  void first_round(const KernelLadder& ladder) {
    std::array<double, kKernelKindCount> seconds_per_work{};  // rate of the kind's last call
    Seconds left = ladder.budget;
    for (std::size_t i = 0; i < ladder.calls.size(); ++i) {
      const KernelCall& call = ladder.calls[i];
      const Seconds share = std::max(left, Seconds{0}) / static_cast<double>(ladder.calls.size() - i);
      double& rate = seconds_per_work[static_cast<std::size_t>(call.kind)];
      if ((1 + kLeastKernelRepeats) * Seconds(rate * work_of(call)) > std::max(share, left * kKernelBudgetShare))
        continue;
      const Seconds before = clock_time();
      const Seconds one = time_run(call, 1, *operands_[0], clock_time);
      const Seconds renewed = clock_time() - before;  // operands renewed, and one call
      Measured& measured = measured_.emplace_back();
      measured.call = &call;
      measured.calls = std::max(1, static_cast<int>(kShortestRun / one));
      const Seconds repeat = renewed + (measured.calls - 1) * one;
      measured.repeats = std::clamp(static_cast<int>(share / repeat), kLeastKernelRepeats, kMostKernelRepeats);
      left -= measured.repeats * repeat;
      time_on_all(measured, 0);
      rate = measured.times.empty() ? one.count() / work_of(call) : median_of(measured).count() / work_of(call);
    }
  }

  /// Each busy rank repeats the call in step with the others.
  void time_on_all(Measured& measured, int round) {
    const int repeats = measured.repeats * (round + 1) / kRounds - measured.repeats * round / kRounds;
    if (repeats == 0) return;
    const bool first = measured.times.empty();
    const std::size_t ranks = operands_.size();
    std::vector<std::vector<Seconds>> times(ranks);
    std::barrier<> together(static_cast<std::ptrdiff_t>(ranks));
    const auto work = [&](std::size_t rank) {
      if (first) time_run(*measured.call, 1, *operands_[rank], clock_);  // not counted: touches the memory
      for (int i = 0; i < repeats; ++i) {
        together.arrive_and_wait();
        times[rank].push_back(time_run(*measured.call, measured.calls, *operands_[rank], clock_));
      }
    };
    std::vector<std::thread> threads;
    for (std::size_t rank = 1; rank < ranks; ++rank) threads.emplace_back(work, rank);
    work(0);
    for (std::thread& thread : threads) thread.join();
    for (const auto& of_rank : times) measured.times.insert(measured.times.end(), of_rank.begin(), of_rank.end());
  }

  static Seconds median_of(Measured& measured) {
    std::ranges::sort(measured.times);
    return measured.times[measured.times.size() / 2];
  }

  KernelSample sample_of(Measured& measured) const {
    const Seconds median = median_of(measured);
    return {.kernel = std::string(kernel_name(measured.call->kind)),
            .shape = measured.call->shape,
            .median = median,
            .fastest = measured.times.front(),
            .slowest = measured.times.back(),
            .repeats = static_cast<int>(measured.times.size()),
            .busy_ranks = static_cast<int>(operands_.size())};
  }

  std::vector<KernelLadder> ladders_;
  ThreadClock clock_;
  std::vector<std::unique_ptr<KernelOperands>> operands_;
  std::vector<Measured> measured_;
};

}  // namespace

std::vector<KernelSample> measure_kernels(std::vector<KernelLadder> ladders, int busy_ranks) {
  return KernelBench(std::move(ladders), busy_ranks).run();
}

std::vector<KernelSample> measure_kernels(std::vector<KernelCall> calls, int busy_ranks, Seconds budget) {
  std::vector<KernelLadder> ladders;
  ladders.push_back({.calls = std::move(calls), .budget = budget});
  return measure_kernels(std::move(ladders), busy_ranks);
}

}}  // namespace plumb::executor
