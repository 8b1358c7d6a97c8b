#pragma once
// NCCL and a GPU's streams on the host: streams are threads, communicators move bytes between threads or processes
// (host_lines.h). As NCCL does, calls on a communicator match in their order alone, a group is launched when it ends,
// a launch goes on behind the call until somebody has asked (is_settled), and abort() ends calls that wait for others.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "executor/transport/nccl/nccl_port.h"
#include "tests/executor/transport/nccl/host_exchange.h"

namespace plumb::test {

/// Time that ranks on threads wait for each other.
inline constexpr Seconds kPatience{20};

/// Runs what is put on it, in order, on a thread of its own.
class HostStream {
 public:
  HostStream() : thread_([this] { work(); }) {}
  ~HostStream() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wakes_.notify_all();
    thread_.join();
  }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void put(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wakes_.notify_all();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        wakes_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

/// A fault on purpose, on one rank.
struct HostNcclFault {
  std::optional<int> fails_at;   ///< this call of NCCL, from 0 on, reports an error while it runs
  std::optional<int> stalls_at;  ///< this one never begins
};

class HostNccl : public NcclPort {
 public:
  explicit HostNccl(HostNcclFault fault = {}) : fault_(fault) {}
  /// Ends the calls that still wait, as a reset of a device does.
  ~HostNccl() override {
    gone_->store(true);
    for (const auto& communicator : communicators_) communicator->aborted.store(true);
    streams_.clear();
  }
  HostNccl(const HostNccl&) = delete;
  HostNccl& operator=(const HostNccl&) = delete;

  int calls() const { return calls_; }
  /// Groups of calls on several communicators.
  int groups() const { return groups_; }
  int open_communicators() const { return open_; }

  NcclId make_id() override {
    NcclId id;
    const std::string path = HostLines::make_file();
    std::copy(path.begin(), path.end(), id.bytes.begin());
    return id;
  }

  Communicator begin_communicator(const NcclId& id, int member, int members, const NcclConfig&) override {
    communicators_.push_back(std::make_unique<Comm>(id.bytes.data(), member, members));
    ++open_;
    return communicators_.back().get();
  }
  bool is_settled(Communicator communicator) override {
    Comm& comm = of(communicator);
    {
      const std::lock_guard lock(comm.mutex);
      if (!comm.error.empty()) throw RunError(comm.error);
    }
    if (!comm.lines.all_have_joined()) return false;
    if (comm.unsettled > 0 && --comm.unsettled > 0) return false;
    for (const auto& launch : std::exchange(comm.launches, {})) launch();
    return true;
  }
  void finalize(Communicator communicator) override { of(communicator).unsettled = 2; }
  void destroy(Communicator communicator) override { abort({&communicator, 1}); }
  void abort(std::span<const Communicator> communicators) noexcept override {
    for (const Communicator communicator : communicators) {
      Comm& comm = of(communicator);
      if (!comm.aborted.exchange(true)) --open_;
      comm.launches.clear();
    }
  }
  std::int64_t free_bytes() override { return std::int64_t{1} << 40; }

  void group_start() override { ++depth_; }
  void group_end() override {
    if (--depth_ > 0) return;
    for (const auto& [comm, part] : group_)
      if (comm != group_.front().first) {
        ++groups_;
        break;
      }
    // Calls on one stream of one communicator go together.
    for (std::size_t first = 0; first < group_.size(); ++first) {
      if (group_[first].first == nullptr) continue;
      std::vector<Part> parts;
      Comm* comm = group_[first].first;
      const Stream stream = group_[first].second.call.stream;
      for (std::size_t i = first; i < group_.size(); ++i)
        if (group_[i].first == comm && group_[i].second.call.stream == stream) {
          parts.push_back(group_[i].second);
          group_[i].first = nullptr;
        }
      launch(*comm, stream, std::move(parts));
    }
    group_.clear();
  }

  void send(const Call& call) override { add(CollectiveKind::kSend, call); }
  void receive(const Call& call) override { add(CollectiveKind::kReceive, call); }
  void broadcast(const Call& call) override { add(CollectiveKind::kBroadcast, call); }
  void reduce(const Call& call) override { add(CollectiveKind::kReduce, call); }
  void all_reduce(const Call& call) override { add(CollectiveKind::kAllReduce, call); }
  void all_gather(const Call& call) override { add(CollectiveKind::kAllGather, call); }
  void reduce_scatter(const Call& call) override { add(CollectiveKind::kReduceScatter, call); }

  Stream make_stream() override { return streams_.emplace_back(std::make_unique<HostStream>()).get(); }
  /// Waits for the stream's work first.
  void destroy_stream(Stream stream) noexcept override {
    std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
  }
  Event make_event() override { return events_.emplace_back(std::make_unique<EventOfHost>()).get(); }
  void destroy_event(Event) noexcept override {}
  void record(Event event, Stream stream) override {
    auto moment = std::make_shared<Flag>(false);
    static_cast<EventOfHost*>(event)->last = moment;
    put(stream, [moment] { moment->store(true); });
  }
  void wait(Stream stream, Event event) override {
    const std::shared_ptr<Flag> moment = static_cast<EventOfHost*>(event)->last;
    if (moment != nullptr)
      put(stream, [moment, gone = gone_] {
        while (!moment->load() && !gone->load()) pause();
      });
  }
  bool has_ended(Event event) override {
    const std::shared_ptr<Flag>& moment = static_cast<EventOfHost*>(event)->last;
    return moment == nullptr || moment->load();
  }

  /// Work of a kernel.
  static void put(Stream stream, std::function<void()> task) { static_cast<HostStream*>(stream)->put(std::move(task)); }

 private:
  using Flag = std::atomic<bool>;

  struct EventOfHost {
    std::shared_ptr<Flag> last;
  };
  struct Comm {
    Comm(const std::string& path, int member, int members) : lines(path, member, members) {}
    HostLines lines;
    std::atomic<bool> aborted{false};
    int unsettled = 2;  // questions until it is there, or what was launched is
    std::vector<std::function<void()>> launches;
    std::mutex mutex;
    std::string error;
  };
  struct Part {
    CollectiveKind kind = CollectiveKind::kSend;
    Call call;
    bool fails = false, stalls = false;
  };

  static Comm& of(Communicator communicator) { return *static_cast<Comm*>(communicator); }
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

  void add(CollectiveKind kind, const Call& call) {
    const Part part{
        .kind = kind, .call = call, .fails = fault_.fails_at == calls_, .stalls = fault_.stalls_at == calls_};
    ++calls_;
    if (depth_ > 0)
      group_.emplace_back(&of(call.communicator), part);
    else
      launch(of(call.communicator), call.stream, {part});
  }

  /// Launches once somebody has asked about it, as NCCL does where calls do not block.
  void launch(Comm& comm, Stream stream, std::vector<Part> parts) {
    auto shared = std::make_shared<std::vector<Part>>(std::move(parts));
    comm.unsettled = 2;
    comm.launches.push_back([&comm, stream, shared] { put(stream, [&comm, shared] { perform(comm, *shared); }); });
  }

  static void perform(Comm& comm, const std::vector<Part>& parts) {
    try {
      HostExchange exchange;
      for (const Part& part : parts) {
        if (part.fails) throw RunError("remote process exited or there was a network error");
        while (part.stalls && !comm.aborted.load()) pause();
        exchange.add(comm.lines, part.kind, part.call);
      }
      while (!comm.aborted.load() && !exchange.is_over())
        if (!exchange.step()) pause();
    } catch (const RunError& error) {
      {
        const std::lock_guard lock(comm.mutex);
        comm.error = error.what();
      }
      while (!comm.aborted.load()) pause();  // its kernel goes on, to nobody's use
    }
  }

  const HostNcclFault fault_;
  std::shared_ptr<Flag> gone_ = std::make_shared<Flag>(false);
  int calls_ = 0, groups_ = 0, open_ = 0, depth_ = 0;
  std::vector<std::pair<Comm*, Part>> group_;
  std::vector<std::unique_ptr<Comm>> communicators_;
  std::vector<std::unique_ptr<EventOfHost>> events_;
  std::vector<std::unique_ptr<HostStream>> streams_;
};

}  // namespace plumb::test
