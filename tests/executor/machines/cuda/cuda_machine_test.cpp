// CudaMachine on a played CUDA: whole trainings, in orders that streams and events allow.

#include "executor/machines/cuda/cuda_machine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executor/measure/device/measure_device.h"
#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/has.h"
#include "tests/executor/machines/cuda/played_run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec small_run(const char* schedule = "1f1b", int ranks = 2) {
  RunSpec spec = spec_of(untied_gpt_model(), make_schedule(schedule, {.ranks = ranks, .microbatches = 4}));
  spec.steps = 3;
  return spec;
}

}  // namespace

TEST_CASE("a training on a GPU has the cpu backend's losses, whatever order its streams and events allow") {
  for (const char* name : {"1f1b", "zb-v", "gpipe", "pipedream"}) {
    const RunSpec spec = small_run(name);
    const RunResult cpu = run(spec);
    std::vector<double> first;
    for (unsigned seed = 1; seed <= 6; ++seed) {
      INFO(name << ", seed " << seed);
      const PlayedRun trained = play(spec, {.parts = false}, {.seed = seed});
      CHECK(trained.error == "");
      check_losses(trained.result, cpu, 1e-6);
      if (first.empty()) first = trained.result.losses;
      CHECK(trained.result.losses == first);
      CHECK(trained.sharing == "streams on all 132 SMs");
    }
  }
}

TEST_CASE("its ranks are green contexts with SMs of their own, or streams where the driver refuses") {
  const RunSpec spec = small_run();
  const std::vector<double> losses = play(spec, {.parts = false}).result.losses;
  const auto shared = [&](const CudaSharing& how, const played::Options& options) {
    const PlayedRun trained = play(spec, how, options);
    CHECK(trained.error == "");
    CHECK(trained.result.losses == losses);
    return trained.sharing;
  };
  CHECK(shared({}, {}) == "green contexts of 64 and 64 SMs");
  CHECK(shared({.shares = {3, 1}}, {.seed = 2}) == "green contexts of 96 and 32 SMs");
  CHECK(shared({}, {.multiprocessors = 108, .major = 8}) == "green contexts of 52 and 52 SMs");
  CHECK(shared({}, {.knows_green_contexts = false}) == "streams on all 132 SMs (the driver has no green contexts)");
  CHECK(has(shared({}, {.gives_green_contexts = false}), "streams on all 132 SMs (the driver does not give groups"));
  CHECK(shared({}, {.multiprocessors = 8}) == "streams on all 8 SMs (2 ranks and 1 groups of SMs)");
}

TEST_CASE("from the third replay on a graph is launched: the same bits, and the times of each replay") {
  for (const char* name : {"1f1b", "zb-h1"}) {
    RunSpec spec = small_run(name);
    spec.steps = 5;
    const PlayedRun calls = play(spec);
    for (unsigned seed = 1; seed <= 6; ++seed) {
      INFO(name << ", seed " << seed);
      const PlayedRun graph = play(spec, {.graph = true}, {.seed = seed});
      CHECK(graph.error == "");
      CHECK(graph.result.losses == calls.result.losses);
      CHECK(graph.counts.graph_launches == spec.steps - 1);
      CHECK(graph.counts.kernels * spec.steps == calls.counts.kernels * 2);
      REQUIRE(graph.result.timelines.size() == calls.result.timelines.size());
      for (std::size_t replay = 0; replay < graph.result.timelines.size(); ++replay)
        for (const RankTimeline& rank : graph.result.timelines[replay].ranks)
          for (const auto& span : rank.spans) CHECK((SimTime{0} <= span.start && span.start <= span.end));
    }
  }
}

TEST_CASE("in bf16 and fp16 products read and write what is stored") {
  for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    // Heads are small so that they do not use tensor cores, which the host plays slowly.
    RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
    spec.steps = 3;
    spec.half = half;
    const RunResult host = on_host(spec);
    const PlayedRun trained = play(spec, {.graph = true}, {.seed = 3});
    CHECK(trained.error == "");
    check_losses(trained.result, host, 1e-5);
  }
}

TEST_CASE("slices of sequences train on a GPU as whole ones, on tensor cores too") {
  RunSpec spec = spec_of(untied_gpt_model(), make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 3}));
  spec.sequence = 8;
  RunSpec whole = spec;
  whole.schedule = spec_of(untied_gpt_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4})).schedule;
  const RunResult cpu = run(whole);
  for (const bool is_half : {false, true})
    for (unsigned seed = 1; seed <= 3; ++seed) {
      INFO(is_half << ", seed " << seed);
      if (is_half) spec.half = HalfFormat::kBf16;
      const PlayedRun trained = play(spec, {}, {.seed = seed});
      CHECK(trained.error == "");
      check_losses(trained.result, cpu, is_half ? 1e-2 : 1e-6);
    }
}

TEST_CASE("ranks that share a GPU reduce, share out and clip") {
  RunSpec spec = spec_of_lowered(
      tied_llama_model(),
      lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 2}}), 2);
  spec.zero = 2;
  spec.steps = 3;
  spec.clip_norm = 0.05;
  const RunResult host = on_host(spec);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const PlayedRun trained = play(spec, {.graph = seed == 2}, {.seed = seed});
    CHECK(trained.error == "");
    check_losses(trained.result, host, 1e-6);
  }
}

TEST_CASE("copies of a stage in one schedule share layer by layer on a GPU") {
  const Schedule order = make_schedule("chimera", {.ranks = 2, .microbatches = 4});
  RunSpec spec = spec_of_lowered(untied_gpt_model(), lower(order, {.data = {.enabled = true, .zero = 3}}), 1);
  spec.zero = 3;
  spec.layerwise = true;
  const RunResult cpu = run(spec);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    const PlayedRun trained = play(spec, {}, {.seed = seed});
    CHECK(trained.error == "");
    check_losses(trained.result, cpu, 1e-6);
  }
}

TEST_CASE("a step allocates nothing and makes nothing") {
  RunSpec spec = small_run();
  spec.steps = 1;
  const played::Counts one = play(spec).counts;
  spec.steps = 4;
  const played::Counts four = play(spec).counts;
  CHECK(one.kernels * 4 == four.kernels);
  CHECK(one.allocations == four.allocations);
  CHECK(one.made == four.made);
}

TEST_CASE("memory that is not there is missed before the first step, for workspaces and the code of kernels too") {
  const RunSpec spec = small_run();
  const std::int64_t taken = play(spec).counts.most_bytes, of_code = std::int64_t{64} << 20U;
  const std::int64_t of_kernel = of_code / play(spec, {}, {.code_bytes = 1}).counts.loaded_kernels;
  CHECK(play(spec, {}, {.memory_bytes = taken + of_code + (1 << 16), .code_bytes = of_kernel}).error == "");
  const PlayedRun refused = play(spec, {}, {.memory_bytes = taken + of_code - (1 << 20), .code_bytes = of_kernel});
  CHECK(has(refused.error, "the device has 127 MiB free and the replay needs 128"));
  CHECK(refused.counts.kernels == 0);
}

TEST_CASE("a rank has the streams that its program uses, and those of exchanges go first") {
  const played::Counts alone = play(small_run("1f1b", 1)).counts;
  CHECK(alone.streams == 1);
  CHECK(alone.urgent_streams == 0);
  for (const bool parts : {false, true}) {
    const played::Counts two = play(small_run("1f1b", 2), {.parts = parts}).counts;
    CHECK(two.streams == 4);  // the first sends activations, the last gradients
    CHECK(two.urgent_streams == 2);
  }
}

TEST_CASE("the host is ahead of the device by less than a stream's queue holds") {
  RunSpec spec = spec_of(untied_gpt_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 48}));
  spec.steps = 2;
  for (const unsigned seed : {1U, 3U}) {  // the device lags behind
    const PlayedRun trained = play(spec, {}, {.seed = seed});
    CHECK(trained.counts.kernels > 4 * 1024);
    CHECK(trained.counts.full_queues == 0);
    check_losses(trained.result, run(spec), 1e-6);
  }
}

TEST_CASE("where cuBLASLt has no product with an epilogue kernels of their own do the same") {
  const RunSpec spec = small_run();
  const RunResult cpu = run(spec);
  const std::int64_t kernels = play(spec).counts.kernels;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const PlayedRun trained = play(spec, {}, {.seed = seed, .refuses_epilogues = true});
    CHECK(trained.counts.kernels > kernels);
    check_losses(trained.result, cpu, 1e-6);
  }
}

TEST_CASE("whatever cannot be had is said, and all that was had is given back") {
  RunSpec spec = small_run();
  spec.steps = 2;
  const std::int64_t made = play(spec, {.graph = true}).counts.made;
  CHECK(made > 100);
  for (std::int64_t call = 0; call < made; call += call < 24 || call > made - 4 ? 1 : 17) {
    INFO(call);
    const PlayedRun refused = play(spec, {.graph = true}, {.refused_call = call});
    const bool is_said = !refused.error.empty() || has(refused.sharing, "the driver does not give");
    CHECK(is_said);
  }
}

TEST_CASE("a kernel that fails is reported once, with rank and action, and nothing hangs") {
  const RunSpec spec = small_run();
  const std::int64_t kernels = play(spec).counts.kernels;
  for (unsigned seed = 1; seed <= 3; ++seed)
    for (const std::int64_t kernel : {std::int64_t{0}, kernels / 5, kernels / 2, kernels - 1}) {
      const PlayedRun failed = play(spec, {}, {.seed = seed, .faulty_kernel = kernel});
      INFO(failed.error);
      CHECK(has(failed.error, "rank "));
      CHECK(has(failed.error, "an illegal memory access was encountered (cudaErrorIllegalAddress)"));
      CHECK(has(failed.error, ", "));
    }
  const PlayedRun captured = play(spec, {.graph = true}, {.faulty_kernel = kernels - 1});
  CHECK(has(captured.error, "without --cuda-graph it is known where"));
}

TEST_CASE("profilers are shown each call by its action") {
  RunSpec spec = small_run();
  spec.steps = 1;
  play(spec);
  const std::vector<std::string> ranges = played::ranges();
  CHECK(ranges.size() > 20);
  CHECK(std::ranges::find(ranges, to_text(spec.schedule.ranks[0].front())) != ranges.end());
}

TEST_CASE("a step over several GPUs is not launched as a graph") {
  played::restart({});
  LinkedCalls* const some = reinterpret_cast<LinkedCalls*>(8);  // the pointer is not used
  CHECK_THROWS_AS(cuda::CudaMachine(0, {}, {.graph = true}, some), SpecError);
}

TEST_CASE("a GPU is measured by the kernels that it trains with") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    played::restart({.seed = seed});
    {
      cuda::CudaMachine machine(0, {});
      const DeviceMeasurement measured =
          measure_device(machine, {.parts = 2,
                                   .budget = Seconds{0.5},
                                   .kernels = {kernel_call(KernelKind::kGemm, {8, 16, 16, 1, 0}),
                                               kernel_call(KernelKind::kResidualAdd, {8, 16}),
                                               kernel_call(KernelKind::kNormForward, {8, 16, 0})},
                                   .largest_copy_bytes = 1 << 16,
                                   .round_bytes = 1 << 18});
      CHECK(measured.measurement.samples.size() == 3 * 2 + 3);
      CHECK(measured.to_host_bytes_per_second > 0);
      CHECK(measured.product_beside_copy.beside > Seconds{0});
      CHECK(machine.sharing() == "green contexts of 64 and 64 SMs");
    }
    CHECK(played_faults() == "");
  }
}

}  // namespace plumb::test
