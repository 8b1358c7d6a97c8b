// Lists of NCCL calls carried out with real data, between threads and between processes.

#include "executor/nccl/nccl_transport.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include "executor/nccl/folder_board.h"
#include "executor/nccl/thread_board.h"
#include "executor/training/fingerprint.h"
#include "executor/transport/transport.h"
#include "tests/executor/has.h"
#include "tests/executor/nccl/host_nccl.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// The rank's memory for every call, and what has come: each call's buffer says who has filled it, and how often.
class CallBuffers {
 public:
  CallBuffers(const NcclOrder& order, int rank) : order_(order), rank_(rank) {
    for (const NcclCall& call : order.ranks[static_cast<std::size_t>(rank)].calls)
      buffers_[&call].assign(static_cast<std::size_t>(call.bytes / 4), 0.0F);
    std::map<std::pair<std::int32_t, std::int32_t>, int> numbers;  // by communicator and peer
    for (const NcclCall& call : order.ranks[static_cast<std::size_t>(rank)].calls) {
      if (call.kind == NcclKind::kCompute) continue;
      const bool is_message = call.kind == NcclKind::kSend || call.kind == NcclKind::kReceive;
      const int direction = call.kind == NcclKind::kReceive ? 1000 : 0;
      number_[&call] = numbers[{call.communicator, is_message ? direction + call.peer : -1}]++;
      if (call.kind != NcclKind::kReceive) std::ranges::fill(buffers_[&call], value(member(call), number_[&call]));
    }
  }

  NcclPlaces of(const NcclCall& call) {
    std::vector<float>& own = buffers_.at(&call);
    return {.from = own.data(), .to = own.data()};
  }

  /// Calls whose values are not what the others have brought.
  int wrong() const {
    int wrong = 0;
    for (const auto& [call, values] : buffers_)
      wrong += call->kind == NcclKind::kCompute || fits(*call, values) ? 0 : 1;
    return wrong;
  }

  /// Of everything that has come, to compare replays.
  std::uint64_t print() const {
    Fingerprint print;
    for (const NcclCall& call : order_.ranks[static_cast<std::size_t>(rank_)].calls)
      for (const float one : buffers_.at(&call)) print.add(static_cast<double>(one));
    return print.value();
  }

 private:
  static float value(int member, int number) { return static_cast<float>(member * 64 + number % 64 + 1); }
  int member(const NcclCall& call) const {
    const std::vector<int>& ranks = order_.communicators[static_cast<std::size_t>(call.communicator)].ranks;
    return static_cast<int>(std::ranges::find(ranks, rank_) - ranks.begin());
  }

  bool fits(const NcclCall& call, const std::vector<float>& values) const {
    const auto members =
        static_cast<int>(order_.communicators[static_cast<std::size_t>(call.communicator)].ranks.size());
    const int number = number_.at(&call);
    float sum = 0;
    for (int other = 0; other < members; ++other) sum += value(other, number);
    const auto all = [&](std::int64_t first, std::int64_t end, float expected) {
      return std::all_of(values.begin() + first, values.begin() + end, [&](float one) { return one == expected; });
    };
    const auto elements = std::ssize(values);
    const auto begin = [&](int block) { return block_begin(elements, members, block); };
    switch (call.kind) {
      case NcclKind::kReceive:
      case NcclKind::kBroadcast:
        return all(0, elements, value(call.peer, number));
      case NcclKind::kReduce:
        return member(call) != call.peer || all(0, elements, sum);
      case NcclKind::kAllReduce:
        return all(0, elements, sum);
      case NcclKind::kReduceScatter:
        return all(begin(member(call)), begin(member(call) + 1), sum);
      case NcclKind::kAllGather:
        for (int other = 0; other < members; ++other)
          if (!all(begin(other), begin(other + 1), value(other, number))) return false;
        return true;
      default:
        return true;
    }
  }

  const NcclOrder& order_;
  const int rank_;
  std::map<const NcclCall*, std::vector<float>> buffers_;
  std::map<const NcclCall*, int> number_;
};

struct TransportOutcome {
  std::string fault;
  bool was_told = false;
  int wrong = 0, left_open = 0;
};

struct TransportCase {
  int replays = 1;
  Seconds timeout = kPatience;
  std::map<int, HostNcclFault> faults;  ///< [rank]
  int hangs = -1, gone = -1;            ///< a rank whose compute never ends; one that leaves before its first call
};

/// What one rank does, as a thread or a process.
TransportOutcome train_rank_of(const NcclOrder& order, int rank, RankBoard& board, const TransportCase& what) {
  TransportOutcome outcome;
  HostNcclFault fault;
  if (const auto found = what.faults.find(rank); found != what.faults.end()) fault = found->second;
  std::atomic<bool> ends{false};
  HostNccl port(fault);
  try {
    require_same_plan(board, fingerprint(order));
    const std::vector<NcclId> ids = hand_out_ids(board, order.communicators, port);
    NcclTransport transport(port, order, rank, ids,
                            {.timeout = what.timeout, .stop_if_told = [&] { stop_if_told(board); }});
    if (what.gone == rank) return outcome;
    for (int replay = 0; replay < what.replays; ++replay) {
      CallBuffers buffers(order, rank);
      try {
        transport.run(
            [&](const NcclCall&, NcclPort::Stream stream) {
              if (what.hangs == rank)
                HostNccl::put(stream, [&ends] {
                  while (!ends.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                });
            },
            [&](const NcclCall& call) { return buffers.of(call); });
      } catch (...) {
        ends.store(true);
        throw;
      }
      outcome.wrong += buffers.wrong();
    }
    transport.finish();
  } catch (const RunAborted&) {
    outcome.was_told = true;
  } catch (const InputError& error) {
    outcome.fault = error.what();
    if (dynamic_cast<const RunError*>(&error) != nullptr) outcome.was_told = !board.tell(outcome.fault);
    if (outcome.was_told) outcome.fault.clear();
  }
  outcome.left_open = port.open_communicators();
  return outcome;
}

std::vector<TransportOutcome> transport_on_threads(const NcclOrder& order, const TransportCase& what = {}) {
  const auto ranks = static_cast<int>(order.ranks.size());
  ThreadMeeting meeting(ranks, kPatience);
  std::vector<TransportOutcome> outcomes(order.ranks.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto board = meeting.board(rank);
      outcomes[static_cast<std::size_t>(rank)] = train_rank_of(order, rank, *board, what);
    });
  for (std::thread& thread : threads) thread.join();
  for (const TransportOutcome& outcome : outcomes) CHECK(outcome.left_open == 0);
  return outcomes;
}

NcclOrder order_of_run(const char* schedule, const ProcessGrid& grid, int zero = 0) {
  ScheduleParameters parameters{.ranks = grid.pipeline, .microbatches = 4};
  if (std::string_view(schedule) == "interleaved") parameters.chunks = 2;
  const Schedule order = make_schedule(schedule, parameters);
  RunSpec spec = spec_of(llama_model(), order);
  spec.grid = grid;
  spec.sequence = 8;
  spec.zero = zero;
  if (grid.data * grid.context > 1) spec.schedule = lower(order, {.data = {.enabled = true, .zero = zero}});
  return plan_nccl_order(spec, plan_training(spec));
}

void check_clean(const std::vector<TransportOutcome>& outcomes) {
  for (const TransportOutcome& outcome : outcomes) {
    CHECK(outcome.fault.empty());
    CHECK(outcome.wrong == 0);
    CHECK_FALSE(outcome.was_told);
  }
}

struct Fault {
  int rank = -1;
  std::string text;
};

/// The one rank that says something, and what.
Fault only_fault(const std::vector<TransportOutcome>& outcomes) {
  Fault found;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].fault.empty()) continue;
    CHECK(found.rank == -1);
    found = {static_cast<int>(rank), outcomes[rank].fault};
  }
  return found;
}

}  // namespace

TEST_CASE("lists of pipelines, replicas, tensor and context groups move what they say, replay after replay") {
  for (const char* schedule : {"1f1b", "interleaved", "zb-h1", "zb-v", "gpipe"}) {
    INFO(schedule);
    check_clean(transport_on_threads(order_of_run(schedule, {.pipeline = 3}), {.replays = 2}));
  }
  check_clean(transport_on_threads(order_of_run("1f1b", {.tensor = 2, .data = 2, .pipeline = 2}), {.replays = 2}));
  check_clean(transport_on_threads(order_of_run("1f1b", {.context = 2, .pipeline = 2})));
  for (const int zero : {1, 2, 3})
    check_clean(transport_on_threads(order_of_run("1f1b", {.data = 3, .pipeline = 1}, zero)));
}

TEST_CASE("another plan on one rank is told before a communicator is made") {
  const NcclOrder order = order_of_run("1f1b", {.pipeline = 3});
  NcclOrder other = order;
  for (NcclCall& call : other.ranks[0].calls) call.bytes += 4;
  ThreadMeeting meeting(3, kPatience);
  std::vector<std::string> said(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const auto board = meeting.board(rank);
      said[static_cast<std::size_t>(rank)] = train_rank_of(rank == 2 ? other : order, rank, *board, {}).fault;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : said)
    CHECK(one ==
          "the ranks were given different plans: rank 2 has another than rank 0; start all of them with the same files "
          "and options");
}

TEST_CASE("a rank whose kernels never end is named by those who wait for it, with call, peer and communicator") {
  const NcclOrder order = order_of_run("1f1b", {.pipeline = 2});
  const Fault fault = only_fault(transport_on_threads(order, {.timeout = Seconds{0.4}, .hangs = 0}));
  INFO(fault.text);
  CHECK((fault.rank == 0 || fault.rank == 1));
  if (fault.rank == 1) CHECK(has(fault.text, "rank 1, action 0: receive of"));
  if (fault.rank == 1) CHECK(has(fault.text, "from rank 0 (activations, ranks 0, 1), communicator"));
  if (fault.rank == 0) CHECK(has(fault.text, "rank 0, action 0: for"));
  CHECK(has(fault.text, "for 0.4 s nothing has come of it; it has completed nothing yet"));
}

TEST_CASE("a call that stalls is named on the rank where it stalls or by its peer, and all are aborted") {
  const NcclOrder order = order_of_run("1f1b", {.pipeline = 2});
  const Fault fault =
      only_fault(transport_on_threads(order, {.timeout = Seconds{0.4}, .faults = {{0, {.stalls_at = 3}}}}));
  INFO(fault.text);
  CHECK(fault.rank >= 0);
  CHECK(has(fault.text, "for 0.4 s nothing has come of it; the last that it has completed is action"));
  CHECK(has(fault.text, fault.rank == 0 ? " rank 1 (" : " rank 0 ("));
}

TEST_CASE("an error of NCCL ends all ranks, and the rank that sees it says what was under way") {
  const NcclOrder order = order_of_run("gpipe", {.pipeline = 3});
  const std::vector<TransportOutcome> outcomes = transport_on_threads(order, {.faults = {{1, {.fails_at = 5}}}});
  const Fault fault = only_fault(outcomes);
  INFO(fault.text);
  CHECK(fault.rank == 1);
  CHECK(has(fault.text, "rank 1, action "));
  CHECK(has(fault.text, "remote process exited or there was a network error"));
  CHECK(outcomes[0].was_told);
  CHECK(outcomes[2].was_told);
}

TEST_CASE("a rank that leaves before its first call is missed by its peers") {
  const NcclOrder order = order_of_run("1f1b", {.pipeline = 3});
  const Fault fault = only_fault(transport_on_threads(order, {.timeout = Seconds{0.4}, .gone = 1}));
  INFO(fault.text);
  CHECK((fault.rank == 0 || fault.rank == 2));
  CHECK(has(fault.text, " rank 1 ("));
  CHECK(has(fault.text, "for 0.4 s nothing has come of it"));
}

TEST_CASE("processes meet in a folder, where an earlier run has left its files, and train; a killed one is missed") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("plumb-board-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* name : {"team", "begin", "hello.0", "hello.1", "hello.2", "agreed.1", "agreed.2"})
    std::ofstream(folder / name) << "old";
  const NcclOrder order = order_of_run("1f1b", {.pipeline = 3});
  for (const bool killed : {false, true}) {
    INFO(killed);
    std::vector<pid_t> children;
    for (int rank = 0; rank < 3; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        int status = 9;
        try {
          FolderBoard board(folder, rank, 3, killed ? Seconds{2} : kPatience);
          if (killed && rank == 1) std::_Exit(7);
          const TransportOutcome outcome = train_rank_of(order, rank, board, {.replays = 2, .timeout = Seconds{0.5}});
          std::ofstream(folder / ("said." + std::to_string(rank))) << outcome.fault;
          status =
              outcome.wrong == 0 && outcome.left_open == 0 ? (outcome.fault.empty() && !outcome.was_told ? 0 : 1) : 8;
        } catch (const std::exception& error) {
          std::ofstream(folder / ("said." + std::to_string(rank))) << error.what();
        }
        std::_Exit(status);
      }
      children.push_back(child);
    }
    for (int rank = 0; rank < 3; ++rank) {
      int status = 0;
      waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
      INFO(rank);
      CHECK(WEXITSTATUS(status) == (killed ? (rank == 1 ? 7 : 1) : 0));
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace plumb::test
