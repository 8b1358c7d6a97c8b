// Measures what one executor for both machines would cost on the CPU: the same run by the cpu backend, and by the
// device's executor on the host machine.
//
//   build/tests/bench/executors_bench [STEPS]
//
// Memory is what decides: a device's arenas are planned before the first step, while the cpu backend takes a tensor when
// it is written, and rows of experts as they are counted. The host machine's kernels play those of a GPU thread by
// thread, so that the ratio of times is an upper end and not what kernels of the CPU would take.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "kernels/cpu/products/gemm.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr std::int64_t kHidden = 64, kSequence = 128;

double median_step_s(const RunResult& result) {
  std::vector<Seconds> steps(result.step_seconds.begin() + 1, result.step_seconds.end());
  std::ranges::sort(steps);
  return steps[steps.size() / 2].count();
}

/// Returns a model of blocks like Llama's, or with experts like Mixtral's, with four times the width of small_model.h.
std::vector<Layer> wide_model(int experts) {
  const TransformerLayer block = {.hidden = kHidden,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_size = 16,
                                  .ffn = 96,
                                  .rotary_size = 16,
                                  .experts = experts,
                                  .experts_per_token = experts > 0 ? 2 : 0,
                                  .expert_ffn = experts > 0 ? 96 : 0};
  return {EmbeddingLayer{.vocab = kVocab, .hidden = kHidden}, block, block, block, block,
          HeadLayer{.vocab = kVocab, .hidden = kHidden}};
}

void compare(const char* name, const std::vector<Layer>& model, int expert, std::optional<HalfFormat> half, int steps) {
  RunSpec spec =
      spec_over(model, "1f1b", {.ranks = 2, .microbatches = 4}, {.expert = expert, .data = expert, .pipeline = 2});
  spec.half = half;
  spec.sequence = kSequence;
  spec.steps = steps;
  const RunResult cpu = run(spec);
  HostMachine machine(half);
  const RunResult device = run_device(spec, machine);
  const auto most = [](const RunResult& result) { return *std::ranges::max_element(result.peak_memory_bytes); };
  std::printf("%-24s %9.2f %9.2f %7.1f %9.1f %9.1f %7.2f\n", name, 1e3 * median_step_s(cpu),
              1e3 * median_step_s(device), median_step_s(device) / median_step_s(cpu),
              1e-3 * static_cast<double>(most(cpu)), 1e-3 * static_cast<double>(most(device)),
              static_cast<double>(most(device)) / static_cast<double>(most(cpu)));
}

}  // namespace

int main(int count, char** arguments) {
  use_one_blas_thread();
  const int steps = count > 1 ? std::max(2, std::atoi(arguments[1])) : 6;
  std::printf("%-24s %27s %27s\n", "1f1b p=2 m=4", "a step, ms", "peak of a rank, KB");
  std::printf("%-24s %9s %9s %7s %9s %9s %7s\n", "", "cpu", "device's", "ratio", "cpu", "device's", "ratio");
  compare("llama", wide_model(0), 1, {}, steps);
  compare("llama, bf16", wide_model(0), 1, HalfFormat::kBf16, steps);
  compare("experts", wide_model(4), 1, {}, steps);
  compare("experts, ep=2", wide_model(4), 2, {}, steps);
}
