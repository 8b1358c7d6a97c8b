// The NCCL functions of libplumb_cuda.so on GPUs of their own, all of it played.

#include <doctest/doctest.h>

#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "executor/cuda_library/entry/nccl_devices.h"
#include "executor/cuda_library/nccl_library.h"
#include "executor/groups/message_pairs.h"
#include "executor/machines/cuda/cuda_nccl_port.h"
#include "executor/training/run.h"
#include "executor/transport/transport.h"
#include "tests/executor/has.h"
#include "tests/executor/machines/cuda/played_run.h"
#include "tests/executor/training/device/host_run.h"
#include "tests/executor/transport/nccl/thread_board.h"

namespace plumb::test {

extern "C" const NcclLibrary* plumb_nccl_library();

namespace {

struct LinkedRun {
  std::optional<RunResult> result;
  std::vector<std::string> errors;  // [rank]
  int told = 0;
};

/// Trains with a thread for each GPU, which has room for NCCL's buffers if the options do not say what it has.
LinkedRun train_on_devices(const RunSpec& spec, played::Options options) {
  if (options.memory_bytes == played::Options{}.memory_bytes) options.memory_bytes = std::int64_t{16} << 30U;
  played::restart(options);
  LinkedRun run{.result = {}, .errors = std::vector<std::string>(static_cast<std::size_t>(options.devices))};
  ThreadMeeting meeting(options.devices, Seconds{20});
  std::vector<char> told(run.errors.size(), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.devices; ++rank)
    threads.emplace_back([&, rank] {
      const auto own = static_cast<std::size_t>(rank);
      const auto board = meeting.board(rank);
      std::optional<RunResult> result;
      bool was_told = false, is_spec = false;
      run.errors[own] = plumb_nccl_library()->run_rank(spec, *board, rank, result, was_told, is_spec);
      told[own] = was_told ? 1 : 0;
      if (rank == 0) run.result = std::move(result);
    });
  for (std::thread& thread : threads) thread.join();
  for (const char one : told) run.told += one;
  CHECK(played_faults() == "");
  return run;
}

RunSpec linked_pipeline(int ranks) {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = ranks, .microbatches = 4}));
  spec.steps = 3;
  return spec;
}

}  // namespace

TEST_CASE("pipelines of 2 and 4 GPUs have the cpu backend's losses") {
  for (const int ranks : {2, 4}) {
    const RunSpec spec = linked_pipeline(ranks);
    const RunResult cpu = run(spec);
    for (unsigned seed = 1; seed <= 3; ++seed) {
      const LinkedRun trained = train_on_devices(spec, {.devices = ranks, .seed = seed});
      for (const std::string& error : trained.errors) CHECK(error == "");
      REQUIRE(trained.result.has_value());
      check_losses(*trained.result, cpu, 1e-6);
    }
  }
}

TEST_CASE("messages that go both ways at once are one group of NCCL's, with the cpu backend's losses") {
  for (const char* name : {"v-1f1b", "dualpipe"}) {
    CAPTURE(name);
    RunSpec spec = spec_of(llama_model(6), make_schedule(name, {.ranks = 4, .microbatches = 8}));
    spec.steps = 2;
    const TrainingPlan plan = plan_training(spec);
    CHECK(!message_pairs(plan.replay.schedule, plan.replay.grid).empty());
    const LinkedRun trained = train_on_devices(spec, {.devices = 4, .seed = 7});
    for (const std::string& error : trained.errors) CHECK(error == "");
    REQUIRE(trained.result.has_value());
    check_losses(*trained.result, run(spec), 1e-5);
  }
}

TEST_CASE("replicas on GPUs of their own reduce by NCCL, with ZeRO too, in bf16 too") {
  for (const int zero : {0, 2}) {
    RunSpec spec = spec_of_lowered(
        llama_model(),
        lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}}), 2);
    spec.zero = zero;
    spec.steps = 3;
    if (zero == 2) spec.half = HalfFormat::kBf16;
    const LinkedRun trained = train_on_devices(spec, {.devices = 4, .seed = 4});
    for (const std::string& error : trained.errors) CHECK(error == "");
    REQUIRE(trained.result.has_value());
    check_losses(*trained.result, on_host(spec), 1e-4);
  }
}

TEST_CASE("experts spread over GPUs of their own, and over parts of one, have the cpu backend's losses") {
  for (const bool is_half : {false, true}) {
    RunSpec spec = spec_of_lowered(
        mixtral_model(2),
        lower(make_schedule("1f1b", {.ranks = is_half ? 1 : 2, .microbatches = 2}), {.data = {.enabled = true}}), 2);
    spec.grid.expert = 2;
    spec.sequence = 8;
    spec.steps = 2;
    if (is_half) spec.half = HalfFormat::kBf16;
    const RunResult cpu = run(spec);
    const LinkedRun trained = train_on_devices(spec, {.devices = is_half ? 2 : 4, .seed = 5});
    for (const std::string& error : trained.errors) CHECK(error == "");
    REQUIRE(trained.result.has_value());
    check_losses(*trained.result, cpu, is_half ? 2e-2 : 1e-5);
    const PlayedRun shared = play(spec, {}, {.seed = 6});
    CHECK(shared.error == "");
    check_losses(shared.result, cpu, is_half ? 2e-2 : 1e-5);
  }
}

TEST_CASE("an error of NCCL, a call that stalls and a kernel that fails end all ranks, and one says where") {
  RunSpec spec = linked_pipeline(2);
  spec.watchdog = Seconds{0.7};
  const auto speaker = [](const LinkedRun& run) {
    CHECK(run.told == 1);
    return run.errors[0].find("rank") == 0 ? run.errors[0] : run.errors[1];
  };
  const std::string failed = speaker(train_on_devices(spec, {.devices = 2, .faulty_device = 1, .nccl_fails_at = 5}));
  CHECK(has(failed, "rank 1, "));
  CHECK(has(failed, "remote process exited or there was a network error"));
  const std::string stalled = speaker(train_on_devices(spec, {.devices = 2, .faulty_device = 0, .nccl_stalls_at = 3}));
  CHECK(has(stalled, "nothing has come of it"));
  const std::string broken = speaker(train_on_devices(spec, {.devices = 2, .faulty_kernel = 40}));
  CHECK(has(broken, "an illegal memory access"));
}

TEST_CASE("schedules train under all that hardware does, in random orders") {
  std::mt19937 random(std::random_device{}());
  const auto one_of = [&](std::initializer_list<int> values) { return values.begin()[random() % values.size()]; };
  for (const char* name : {"1f1b", "zb-v", "gpipe", "interleaved", "dualpipe", "v-1f1b"}) {
    ScheduleParameters parameters{.ranks = 4, .microbatches = 8};
    if (std::string_view(name) == "interleaved") parameters.chunks = 2;
    RunSpec spec = spec_of(llama_model(8), make_schedule(name, parameters));
    spec.steps = 2;
    const RunResult cpu = run(spec);
    for (int i = 0; i < 4; ++i) {
      played::Options options{.devices = 4,
                              .multiprocessors = one_of({40, 108, 132}),
                              .seed = static_cast<unsigned>(random()),
                              .launch_queue = static_cast<std::size_t>(one_of({1000, 1024})),
                              .connections = one_of({1, 2, 8, 32}),
                              .refuses_epilogues = one_of({0, 1}) == 1};
      INFO(name << ", seed " << options.seed << ", connections " << options.connections << ", SMs "
                << options.multiprocessors);
      const LinkedRun linked = train_on_devices(spec, options);
      for (const std::string& error : linked.errors) CHECK(error == "");
      REQUIRE(linked.result.has_value());
      check_losses(*linked.result, cpu, 1e-5);
      options.devices = 1;
      options.multiprocessors = 132;
      const PlayedRun shared = play(spec, {.graph = i == 0}, options);
      CHECK(shared.error == "");
      check_losses(shared.result, cpu, 1e-5);
    }
  }
}

TEST_CASE("a rank whose streams are full says that its peer has stalled, and ends") {
  RunSpec spec = spec_of(llama_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 64}));
  spec.watchdog = Seconds{0.7};
  const LinkedRun run = train_on_devices(spec, {.devices = 2, .seed = 4, .faulty_device = 0, .nccl_stalls_at = 1});
  CHECK(run.told == 1);
  CHECK(has(run.errors[0] + run.errors[1], "for 0.7 s nothing has come of it"));
  CHECK(played::counts().full_queues == 0);
}

TEST_CASE("the channels of a rank leave it SMs to compute on") {
  const RunSpec spec = linked_pipeline(4);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const LinkedRun trained =
        train_on_devices(spec, {.devices = 4, .multiprocessors = 40, .seed = seed, .nccl_sms = 24});
    for (const std::string& error : trained.errors) CHECK(error == "");
  }
}

TEST_CASE("where NCCL's buffers do not fit one rank says so before they meet") {
  const LinkedRun run = train_on_devices(linked_pipeline(2), {.devices = 2, .memory_bytes = 160 << 20});
  CHECK(run.told == 1);
  CHECK(has(run.errors[0] + run.errors[1],
            "NCCL's buffers take about 147 MiB for 2 communicators, and beside weights "
            "and activations the device has 12"));
  CHECK(played::counts().kernels == 0);
}

TEST_CASE("collectives of the GPUs of a process are timed, their values checked, and products beside them") {
  for (const int devices : {2, 4}) {
    played::restart({.devices = devices, .seed = 2});
    NcclMeasureOptions options;
    options.sizes_bytes = {1 << 10, 1 << 14};
    options.budget = Seconds{0.4};
    NcclMeasurement measured;
    CHECK(plumb_nccl_library()->measure(options, measured) == "");
    CHECK(measured.version == "2.28.0");
    CHECK(measured.ranks == devices);
    CHECK(measured.samples.size() > 8);
    REQUIRE(!measured.slowdowns.empty());
    for (const SlowdownSample& sample : measured.slowdowns) {
      CHECK(sample.members == devices);
      CHECK(sample.bytes == 1 << 14);
      CHECK(sample.product_edge >= 64);
      for (const Seconds time : {sample.alone, sample.beside, sample.collective_alone, sample.collective})
        CHECK(time > Seconds{0});
    }
    CHECK(played_faults() == "");
  }
  played::restart({.devices = 2});
  NcclMeasureOptions options;
  options.ranks = 3;
  NcclMeasurement measured;
  CHECK(has(plumb_nccl_library()->measure(options, measured), "3 ranks were asked for and there are 2 GPUs"));
}

TEST_CASE("beside each other products and a collective begin behind what every GPU has done before") {
  for (const bool is_half : {false, true}) {
    played::restart({.devices = 3, .seed = 7});
    {
      cuda::NcclGpus gpus(3, 1 << 16);
      OverlapWork work{.product_edge = 32, .products = 3, .lead = 2, .round = NcclRound{.bytes = 1 << 12}};
      if (is_half) work.half = HalfFormat::kBf16;
      const std::int64_t before = played::counts().products;
      for (const OverlapTimes& one : gpus.overlap(work)) {
        CHECK(one.products > Seconds{0});
        CHECK(one.collective > Seconds{0});
      }
      CHECK(played::counts().products - before == 3 * (3 + 2));
      work.round.reset();
      for (const OverlapTimes& one : gpus.overlap(work)) CHECK(one.collective == Seconds{0});
      work.products = 0;
      for (const OverlapTimes& one : gpus.overlap(work)) CHECK(one.products == Seconds{0});
      CHECK(gpus.wrong_values({.bytes = 1 << 12}) == 0);  // the next work is not affected
    }
    CHECK(played_faults() == "");
  }
}

TEST_CASE("two members on one GPU of one host are refused by NCCL itself, on both") {
  played::restart({});
  cuda::CudaNcclPort port;
  const NcclId id = port.make_id();
  const NcclPort::Communicator first = port.begin_communicator(id, 0, 2, {});
  CHECK(!port.is_settled(first));
  const NcclPort::Communicator second = port.begin_communicator(id, 1, 2, {});
  for (const NcclPort::Communicator one : {first, second}) {
    CHECK_THROWS_WITH_AS(
        port.is_settled(one),
        doctest::Contains("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 0000:01:00.0"), RunError);
    port.abort({&one, 1});
  }
  CHECK(played_faults() == "");
}

TEST_CASE("where memory is not there for NCCL's buffers nothing is left of those that were had") {
  played::restart({.devices = 2, .memory_bytes = 1 << 20});
  CHECK_THROWS_AS(cuda::NcclGpus(2, 1 << 20), RunError);
  CHECK(played_faults() == "");
}

TEST_CASE("where matrices do not fit, or NCCL fails beside them, a sentence says so and nothing is left") {
  played::restart({.devices = 2, .memory_bytes = 1 << 24});
  {
    cuda::NcclGpus gpus(2, 1 << 12);
    CHECK_THROWS_AS(gpus.overlap({.product_edge = 2048, .products = 1}), RunError);
  }
  CHECK(played_faults() == "");
  played::restart({.devices = 2, .faulty_device = 1, .nccl_fails_at = 3});
  {
    cuda::NcclGpus gpus(2, 1 << 12);
    const OverlapWork work{.product_edge = 16, .products = 2, .lead = 1, .round = NcclRound{.bytes = 1 << 10}};
    std::string said;
    try {
      for (int i = 0; i < 4; ++i) gpus.overlap(work);
    } catch (const RunError& error) {
      said = error.what();
    }
    CHECK(has(said, "remote process exited or there was a network error"));
  }
  CHECK(played_faults() == "");
}

}  // namespace plumb::test
