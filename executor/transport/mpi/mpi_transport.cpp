#include "executor/transport/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/transport/emulated/sleeper.h"
#include "executor/transport/mpi/polite_wait.h"
#include "executor/transport/word_sum.h"

namespace plumb { inline namespace executor {
namespace {

constexpr SimTime kShortestPause{5'000'000};
constexpr SimTime kLongestPause{50'000'000};

/// The header that goes ahead of every message; its length is the same for all.
using Header = std::array<std::int64_t, 8>;
constexpr std::size_t kElements = 6, kWordSum = 7;  // positions in every header

Header header_of(const MessageTag& tag, std::span<const float> values) {
  return {
      tag.stage, tag.microbatch, tag.slice, 0, 0, 0, std::ssize(values), static_cast<std::int64_t>(word_sum(values))};
}

/// `group` tells apart groups whose names lead to one MPI tag.
Header header_of(const MoveTag& tag, std::int64_t group, std::span<const float> values) {
  return {tag.number,
          static_cast<std::int64_t>(tag.op),
          static_cast<std::int64_t>(tag.algorithm),
          tag.elements,
          tag.root,
          group,
          std::ssize(values),
          static_cast<std::int64_t>(word_sum(values))};
}

bool says_the_same(const Header& one, const Header& other) {
  return std::equal(one.begin(), one.begin() + kElements, other.begin());
}

/// Compares what was received with what was expected, in kind, length and sum. Returns the fault, or an empty text.
std::string fault_of(const std::string& what, const Header& expected, const Header& received,
                     std::span<const float> values) {
  if (!says_the_same(expected, received))
    return fmt::format("{}: something else came in its place: the two ranks' lists disagree", what);
  if (received[kElements] != std::ssize(values))
    return fmt::format("{}: {} values were sent and {} expected", what, received[kElements], values.size());
  if (received[kWordSum] != static_cast<std::int64_t>(word_sum(values))) return changed_text(what, values.size());
  return {};
}

std::string mpi_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

/// A message, or both halves of a move, under way.
struct MpiTransport::Operation : Ticket {
  std::vector<MPI_Request> requests;
  Header sent{}, expected{}, received{};
  std::span<float> incoming;
  Tensor tensor;
  std::string what;  // name of the message in errors
  int peer = -1;     // rank that a move waits for
  TransferTimes times;
  bool done = true;
  bool comes_in = false;  // a message that is checked before it counts as done
  std::string fault;      // error of MPI, or fault of the message
};

/// The only user of MPI. Posts, polls and waits take turns under its mutex.
class MpiTransport::Engine {
 public:
  Engine(const MpiOptions& options, Clock clock) : options_(options), clock_(std::move(clock)) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (MPI_Comm* communicator : {&messages, &lines}) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Comm_idup(MPI_COMM_WORLD, communicator, &request);
      wait_politely({.rank = rank, .what = "the other ranks", .patience = options_.watchdog}, [&] {
        int has_ended = 0;
        MPI_Test(&request, &has_ended, MPI_STATUS_IGNORE);
        return has_ended != 0;
      });
      MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN);
    }
    void* bound = nullptr;
    int found = 0;
    MPI_Comm_get_attr(lines, MPI_TAG_UB, &bound, &found);
    highest_tag = found != 0 ? *static_cast<int*>(bound) : 32767;
    worker_ = std::thread([this] { work(); });
  }

  ~Engine() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      wake_worker_.notify_all();
    }
    worker_.join();
    if (aborted_) return;  // the other ends may never come
    for (MPI_Comm* communicator : {&messages, &lines}) MPI_Comm_free(communicator);
  }

  /// Starts an operation; `post` fills its requests.
  template <class Post>
  void begin(const std::shared_ptr<Operation>& operation, Post post) {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw RunAborted(*aborted_);
    operation->requests.clear();
    operation->done = false;
    operation->fault.clear();
    operation->times.start = clock_();
    post();
    open_.push_back(operation);
    last_move_ = clock_();
    wake_worker_.notify_all();
  }

  void wait(const Operation& operation) {
    std::unique_lock lock(mutex_);
    const SimTime began = clock_(), patience = to_sim_time(options_.watchdog);
    while (!operation.done) {
      if (aborted_) throw RunAborted(*aborted_);
      wake_callers_.wait_for(lock, options_.watchdog / 10);
      if (!operation.done && clock_() - std::max(began, last_move_) > patience)
        throw RunError(fmt::format("it waited for {}{}, and for {} s nothing has come to this rank or left it",
                                   operation.peer < 0 ? "" : fmt::format("rank {} in ", operation.peer), operation.what,
                                   options_.watchdog.count()));
    }
    if (!operation.fault.empty()) throw RunError(operation.fault);
  }

  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = reason;
    wake_callers_.notify_all();
  }

  MPI_Comm messages = MPI_COMM_NULL;  // activations and gradients between stages, told apart by tag
  MPI_Comm lines = MPI_COMM_NULL;     // moves of collectives, one tag a group
  int highest_tag = 0;

 private:
  void work() {
    ask_for_prompt_waking();
    const Sleeper sleeper;
    SimTime pause = kShortestPause;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_worker_.wait(lock, [&] { return closing_ || !open_.empty(); });
      if (closing_) return;
      if (ask()) {
        pause = kShortestPause;
        last_move_ = clock_();
        wake_callers_.notify_all();
        continue;
      }
      lock.unlock();
      sleeper.sleep_until(sleeper.now() + pause);
      pause = std::min(2 * pause, kLongestPause);
      lock.lock();
    }
  }

  /// Polls all operations; returns true if any has ended.
  bool ask() {
    const auto ended = [this](const std::shared_ptr<Operation>& operation) {
      int all = 0;
      const int code = MPI_Testall(static_cast<int>(operation->requests.size()), operation->requests.data(), &all,
                                   MPI_STATUSES_IGNORE);
      if (code == MPI_SUCCESS && all == 0) return false;
      operation->times.end = clock_();
      if (code != MPI_SUCCESS)
        operation->fault = fmt::format("{}: {}", operation->what, mpi_text(code));
      else if (operation->comes_in)  // checked on this thread, since the rank may compute meanwhile
        operation->fault =
            fault_of(operation->what, operation->expected, operation->received, operation->tensor.values());
      operation->done = true;
      return true;
    };
    return std::erase_if(open_, ended) > 0;
  }

  const MpiOptions options_;
  const Clock clock_;
  std::mutex mutex_;
  std::condition_variable wake_worker_, wake_callers_;
  std::vector<std::shared_ptr<Operation>> open_;
  std::optional<std::string> aborted_;
  SimTime last_move_{0};
  bool closing_ = false;
  std::thread worker_;
};

namespace {

/// Posts both parts of a message, header and values, one after the other.
void post_send(std::vector<MPI_Request>& requests, const Header& header, std::span<const float> values, int to, int tag,
               MPI_Comm communicator, Sends sends) {
  requests.resize(requests.size() + 2);
  MPI_Isend(header.data(), static_cast<int>(header.size()), MPI_INT64_T, to, tag, communicator, &requests.end()[-2]);
  (sends == Sends::kRendezvous ? MPI_Issend : MPI_Isend)(values.data(), static_cast<int>(values.size()), MPI_FLOAT, to,
                                                         tag, communicator, &requests.end()[-1]);
}

void post_receive(std::vector<MPI_Request>& requests, Header& header, std::span<float> values, int from, int tag,
                  MPI_Comm communicator) {
  requests.resize(requests.size() + 2);
  MPI_Irecv(header.data(), static_cast<int>(header.size()), MPI_INT64_T, from, tag, communicator, &requests.end()[-2]);
  MPI_Irecv(values.data(), static_cast<int>(values.size()), MPI_FLOAT, from, tag, communicator, &requests.end()[-1]);
}

}  // namespace

/// A member's connections to the others, by MPI.
class MpiTransport::Lines : public PointToPoint {
 public:
  Lines(Engine& engine, CommunicatorGroup group)
      : engine_(engine),
        group_(std::move(group)),
        id_(static_cast<std::int64_t>(std::hash<std::string>{}(to_text(group_)) >> 1)),
        tag_(static_cast<int>(id_ % engine.highest_tag)),
        operation_(std::make_shared<Operation>()) {}

  void move(const MoveTag& tag, const Move& move) override {
    Operation& operation = *operation_;
    if (move.add) staging_.resize(std::max(staging_.size(), move.incoming.size()));
    const std::span<float> incoming = move.add ? std::span(staging_).first(move.incoming.size()) : move.incoming;
    if (number_ != tag.number || operation.what.empty()) {
      number_ = tag.number;
      operation.what = fmt::format("collective {} of the {}, {}", tag.number, to_text(group_), to_text(tag));
    }
    operation.peer = rank(move.receive_from >= 0 ? move.receive_from : move.send_to);
    engine_.begin(operation_, [&] {
      if (move.send_to >= 0) {
        operation.sent = header_of(tag, id_, move.outgoing);
        post_send(operation.requests, operation.sent, move.outgoing, rank(move.send_to), tag_, engine_.lines,
                  Sends::kBuffered);
      }
      if (move.receive_from >= 0)
        post_receive(operation.requests, operation.received, incoming, rank(move.receive_from), tag_, engine_.lines);
    });
    engine_.wait(operation);
    if (move.receive_from < 0) return;
    const std::string fault = fault_of(fmt::format("{} from rank {}", operation.what, rank(move.receive_from)),
                                       header_of(tag, id_, {}), operation.received, incoming);
    if (!fault.empty()) throw RunError(fault);
    if (!move.add) return;
    for (std::size_t i = 0; i < incoming.size(); ++i) move.incoming[i] += incoming[i];
  }

 private:
  int rank(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }

  Engine& engine_;
  const CommunicatorGroup group_;
  const std::int64_t id_;  // id of the group
  const int tag_;
  const std::shared_ptr<Operation> operation_;
  std::int64_t number_ = -1;
  std::vector<float> staging_;
};

MpiTransport::MpiTransport(const MpiOptions& options, Clock clock)
    : options_(options), engine_(std::make_unique<Engine>(options, std::move(clock))) {}

MpiTransport::~MpiTransport() = default;

TicketPtr MpiTransport::send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) {
  auto operation = std::make_shared<Operation>();
  operation->tensor = std::move(payload);
  operation->what = "the receiver of the " + to_text(channel, tag);
  operation->sent = header_of(tag, operation->tensor.values());
  engine_->begin(operation, [&] {
    post_send(operation->requests, operation->sent, operation->tensor.values(), channel.destination,
              static_cast<int>(channel.kind), engine_->messages, options_.sends);
  });
  return operation;
}

TicketPtr MpiTransport::receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) {
  auto operation = std::make_shared<Operation>();
  operation->tensor = std::move(destination);
  operation->what = "the " + to_text(channel, tag);
  operation->expected = header_of(tag, {});
  operation->comes_in = true;
  engine_->begin(operation, [&] {
    post_receive(operation->requests, operation->received, operation->tensor.values(), channel.source,
                 static_cast<int>(channel.kind), engine_->messages);
  });
  return operation;
}

Received MpiTransport::wait_received(const TicketPtr& receive) {
  auto& operation = static_cast<Operation&>(*receive);
  engine_->wait(operation);
  return {std::move(operation.tensor), operation.times};
}

TransferTimes MpiTransport::wait_sent(const TicketPtr& send) {
  auto& operation = static_cast<Operation&>(*send);
  engine_->wait(operation);
  operation.tensor = {};
  return operation.times;
}

std::unique_ptr<PointToPoint> MpiTransport::connect(const CommunicatorGroup& group, int) {
  return std::make_unique<Lines>(*engine_, group);
}

Tensor MpiTransport::copy_to(int rank, const Tensor&) {
  throw RunError(
      fmt::format("EVICT and LOAD write to the memory of rank {}, which is another process: replay this "
                  "schedule without mpirun",
                  rank));
}

void MpiTransport::abort(const std::string& reason) {
  engine_->abort(reason);
}

}}  // namespace plumb::executor
