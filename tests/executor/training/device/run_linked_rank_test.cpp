// Training with a machine for each rank, between which NCCL on the host moves the bytes.

#include "executor/training/device/run_linked_rank.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "executor/groups/message_pairs.h"
#include "executor/training/run.h"
#include "executor/transport/nccl/folder_board.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "tests/executor/has.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"
#include "tests/executor/transport/nccl/linked_host_machine.h"
#include "tests/executor/transport/nccl/thread_board.h"

namespace plumb::test {
namespace {

struct LinkedTraining {
  std::optional<RunResult> result;
  std::string fault;
  bool was_told = false;
  int exchanges = 0, groups = 0, left_open = 0, open_when_told = 0;
};

/// Notes how many communicators are open when a fault is told.
class HeardBoard : public RankBoard {
 public:
  HeardBoard(RankBoard& board, const HostNccl& port, int& open) : board_(board), port_(port), open_(open) {}
  int rank() const override { return board_.rank(); }
  int ranks() const override { return board_.ranks(); }
  std::string exchange(const std::string& own, std::vector<std::string>& all) override {
    return board_.exchange(own, all);
  }
  bool tell(const std::string& fault) override {
    open_ = std::max(open_, port_.open_communicators());
    return board_.tell(fault);
  }
  std::string told() override { return board_.told(); }

 private:
  RankBoard& board_;
  const HostNccl& port_;
  int& open_;
};

LinkedTraining train_linked(const RunSpec& spec, RankBoard& board, HostNcclFault fault = {},
                            const std::string& device = "") {
  LinkedTraining trained;
  HostNccl port(fault);
  HeardBoard heard(board, port, trained.open_when_told);
  LinkedRank rank{.board = &heard, .port = &port, .device = device.empty() ? std::to_string(board.rank()) : device};
  rank.make_machine = [&](LinkedCalls& links) { return std::make_unique<LinkedHostMachine>(port, links, spec.half); };
  try {
    trained.result = run_linked_rank(spec, rank);
  } catch (const RunAborted&) {
    trained.was_told = true;
  } catch (const InputError& error) {
    trained.fault = error.what();
  }
  trained.exchanges = port.calls();
  trained.groups = port.groups();
  trained.left_open = port.open_communicators();
  return trained;
}

std::vector<LinkedTraining> linked_on_threads(const RunSpec& spec, int ranks, int faulty = -1, HostNcclFault fault = {},
                                              const std::string& device = "") {
  ThreadMeeting meeting(ranks, kPatience);
  std::vector<LinkedTraining> all(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto board = meeting.board(rank);
      all[static_cast<std::size_t>(rank)] =
          train_linked(spec, *board, rank == faulty ? fault : HostNcclFault{}, device);
    });
  for (std::thread& thread : threads) thread.join();
  for (const LinkedTraining& one : all) CHECK(one.left_open == 0);
  return all;
}

RunResult of_all(const std::vector<LinkedTraining>& ranks) {
  for (const LinkedTraining& one : ranks) {
    CHECK(one.fault.empty());
    CHECK(one.exchanges > 0);
  }
  REQUIRE(ranks.front().result.has_value());
  return *ranks.front().result;
}

}  // namespace

TEST_CASE("pipelines whose ranks have a machine each train bitwise as on one machine") {
  for (const char* name : {"1f1b", "zb-h1", "interleaved", "zb-v", "stp", "gpipe"}) {
    INFO(name);
    ScheduleParameters parameters{.ranks = 3, .microbatches = 6};
    if (std::string_view(name) == "interleaved") parameters.chunks = 2;
    RunSpec spec = spec_of(llama_model(), make_schedule(name, parameters));
    spec.steps = 2;
    HostMachine alone;
    const RunResult expected = run_device(spec, alone);
    CHECK(of_all(linked_on_threads(spec, 3)).losses == expected.losses);
  }
}

TEST_CASE("messages that go both ways at once are launched as one group, and train bitwise as on one machine") {
  for (const char* name : {"v-1f1b", "dualpipe", "dualpipev", "v-half"}) {
    INFO(name);
    RunSpec spec = spec_of(llama_model(6), make_schedule(name, {.ranks = 4, .microbatches = 8}));
    spec.steps = 2;
    const TrainingPlan plan = plan_training(spec);
    const std::size_t pairs = message_pairs(plan.replay.schedule, plan.replay.grid).size();
    REQUIRE(pairs > 0);
    const std::vector<LinkedTraining> ranks = linked_on_threads(spec, 4);
    HostMachine alone;
    CHECK(of_all(ranks).losses == run_device(spec, alone).losses);
    std::size_t groups = 0;
    for (const LinkedTraining& one : ranks) groups += static_cast<std::size_t>(one.groups);
    CHECK(groups == 2 * 2 * pairs);  // steps, ends
  }
}

TEST_CASE("in bf16 too") {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  spec.steps = 3;
  spec.half = HalfFormat::kBf16;
  HostMachine alone(spec.half);
  const RunResult expected = run_device(spec, alone), ours = of_all(linked_on_threads(spec, 2));
  CHECK(ours.losses == expected.losses);
  CHECK(ours.timelines.size() == 3);
}

TEST_CASE("ranks with a machine each clip, scale losses and sum tied tables as they do on one machine") {
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
    RunSpec spec = spec_of_lowered(tied_llama_model(), lower(order, {.data = {.enabled = true, .zero = what}}), 2);
    spec.zero = what;
    spec.steps = 3;
    if (what != 1) spec.clip_norm = 0.05;
    if (what == 1) spec.half = HalfFormat::kFp16;
    HostMachine alone(spec.half);
    const RunResult expected = run_device(spec, alone), ours = of_all(linked_on_threads(spec, 4));
    REQUIRE(ours.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      CHECK(ours.losses[i] == doctest::Approx(expected.losses[i]).epsilon(what == 1 ? 2e-3 : 1e-5));
    CHECK(ours.skipped_steps == expected.skipped_steps);
  }
}

TEST_CASE("replicas with a machine each follow the CPU's losses") {
  int compared = 0;
  for (const int zero : {0, 1, 2, 3}) {
    INFO(zero);
    const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
    RunSpec spec = spec_of(llama_model(), order);
    spec.grid.data = 2;
    spec.zero = zero;
    spec.schedule = lower(order, {.data = {.enabled = true, .zero = zero}});
    spec.steps = 3;
    try {
      require_device_runnable(spec);
    } catch (const SpecError&) {
      continue;
    }
    const RunResult expected = run(spec), ours = of_all(linked_on_threads(spec, 4));
    REQUIRE(ours.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      CHECK(ours.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
    ++compared;
  }
  CHECK(compared == 4);
}

TEST_CASE("layer by layer too, bitwise as on one machine where two members add") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  RunSpec spec = spec_of_lowered(llama_model(), lower(order, {.data = {.enabled = true, .zero = 3}}), 2);
  spec.zero = 3;
  spec.layerwise = true;
  spec.steps = 2;
  HostMachine alone;
  CHECK(of_all(linked_on_threads(spec, 4)).losses == run_device(spec, alone).losses);
}

TEST_CASE("stages on meshes of different shape train with a machine for each rank as on one machine") {
  for (const Resharding kind : {Resharding::kAllGather, Resharding::kBroadcast}) {
    CAPTURE(static_cast<int>(kind));
    RunSpec spec = spec_of_lowered(
        llama_model(), lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true}}), 1);
    spec.meshes = {{.data = 2, .tensor = 1}, {.data = 1, .tensor = 2}};
    spec.resharding = kind;
    spec.microbatch = 4;
    spec.steps = 2;
    HostMachine alone;
    CHECK(of_all(linked_on_threads(spec, 4)).losses == run_device(spec, alone).losses);
  }
}

TEST_CASE("context ranks with a machine each train bitwise as on one machine") {
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing}) {
    CAPTURE(static_cast<int>(attention));
    const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
    RunSpec spec = spec_of_lowered(llama_model(), lower(order, {.data = {.enabled = true}}), 1);
    spec.grid.context = 2;
    spec.context_attention = attention;
    spec.sequence = 8;
    spec.steps = 2;
    HostMachine alone;
    const RunResult expected = run_device(spec, alone);
    CHECK(of_all(linked_on_threads(spec, 4)).losses == expected.losses);
  }
}

TEST_CASE("experts that ranks with a machine each have between them train bitwise as on one machine") {
  for (const bool is_sharded : {false, true}) {
    CAPTURE(is_sharded);
    const Schedule order =
        make_schedule(is_sharded ? "naive" : "1f1b", {.ranks = is_sharded ? 1 : 2, .microbatches = 2});
    RunSpec spec = spec_of_lowered(shared_expert_model(2),
                                   lower(order, {.data = {.enabled = true, .zero = is_sharded ? 3 : 0}}), 2);
    spec.grid.expert = 2;
    if (is_sharded) spec.grid.data = 4;
    spec.zero = is_sharded ? 3 : 0;
    spec.sequence = 8;
    spec.steps = 2;
    HostMachine alone;
    const RunResult expected = run_device(spec, alone), ours = of_all(linked_on_threads(spec, 4));
    if (is_sharded)
      check_losses(ours, expected, 1e-5);  // four add common gradients
    else
      CHECK(ours.losses == expected.losses);
  }
}

TEST_CASE("an error of NCCL in training is said by one rank, with action, call, peer and communicator") {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
  spec.steps = 2;
  const std::vector<LinkedTraining> ranks = linked_on_threads(spec, 3, 1, {.fails_at = 5});
  int said = 0;
  for (const LinkedTraining& one : ranks) {
    if (one.fault.empty()) {
      CHECK(one.was_told);
      continue;
    }
    ++said;
    INFO(one.fault);
    CHECK(has(one.fault, "rank 1, "));
    CHECK(has(one.fault, "communicator "));
    CHECK(has(one.fault, "remote process exited or there was a network error"));
    CHECK((has(one.fault, "the last that it has completed is ") || has(one.fault, "it has completed nothing yet")));
    CHECK(one.open_when_told == 4);  // by an abort the others would notice, and take it for the fault
  }
  CHECK(said == 1);
}

TEST_CASE("a call that never begins ends the training of all ranks") {
  RunSpec spec = spec_of(llama_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 4}));
  spec.steps = 2;
  spec.watchdog = Seconds{0.5};
  int said = 0;
  for (const LinkedTraining& one : linked_on_threads(spec, 2, 0, {.stalls_at = 6})) {
    said += one.fault.empty() ? 0 : 1;
    INFO(one.fault);
    if (!one.fault.empty()) CHECK(has(one.fault, "for 0.5 s nothing has come of it"));
  }
  CHECK(said == 1);
}

TEST_CASE("two ranks on one GPU are told so before NCCL is") {
  const RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  for (const LinkedTraining& one : linked_on_threads(spec, 2, -1, {}, "0000:01:00.0")) {
    CHECK(has(one.fault, "ranks 0 and 1 are on one GPU, 0000:01:00.0"));
    CHECK(one.exchanges == 0);
  }
}

TEST_CASE("ranks that are processes and meet in a folder train as on one machine, and tell another plan") {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  spec.steps = 2;
  HostMachine alone;
  const RunResult expected = run_device(spec, alone);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("plumb-linked-" + std::to_string(getpid()));
  for (const bool differs : {false, true}) {
    INFO(differs);
    const pid_t child = fork();
    const int own = child == 0 ? 1 : 0;
    LinkedTraining trained;
    try {
      RunSpec given = spec;
      if (differs && own == 1) given.seed = 99;
      FolderBoard board(folder, own, 2, kPatience);
      trained = train_linked(given, board);
    } catch (const std::exception& error) {
      trained.fault = error.what();
    }
    if (own == 1)
      std::_Exit(has(trained.fault, "rank 1 has another than rank 0") ? 3 : (trained.fault.empty() ? 0 : 1));
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == (differs ? 3 : 0));
    CHECK(has(trained.fault, "rank 1 has another than rank 0") == differs);
    if (!differs) REQUIRE(trained.result.has_value());
    if (!differs) CHECK(trained.result->losses == expected.losses);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("processes meet in a folder where an earlier run has left its files; one that is gone is missed") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("plumb-board-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* name : {"team", "begin", "hello.0", "hello.1", "hello.2", "agreed.1", "agreed.2"})
    std::ofstream(folder / name) << "old";
  const RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
  for (const bool is_gone : {false, true}) {
    INFO(is_gone);
    std::vector<pid_t> children;
    for (int rank = 0; rank < 3; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        LinkedTraining trained;
        try {
          FolderBoard board(folder, rank, 3, is_gone ? Seconds{1} : kPatience);
          if (is_gone && rank == 1) std::_Exit(7);
          trained = train_linked(spec, board);
        } catch (const std::exception& error) {
          trained.fault = error.what();
        }
        std::_Exit(trained.left_open > 0 ? 8 : (trained.fault.empty() && !trained.was_told ? 0 : 1));
      }
      children.push_back(child);
    }
    for (int rank = 0; rank < 3; ++rank) {
      int status = 0;
      waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
      INFO(rank);
      CHECK(WEXITSTATUS(status) == (!is_gone ? 0 : (rank == 1 ? 7 : 1)));
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace plumb::test
