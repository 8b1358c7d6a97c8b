#pragma once
// A device that is the host: its kernels are host_kernels.h's. Since no call of a program waits for a later one,
// running them in the order in which they are enqueued is one of the orders that a device may take; RaggedHostMachine
// takes another.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/transport/transport.h"
#include "tests/executor/machines/host_kernels.h"

namespace plumb::test {

/// Work that has been enqueued, in order.
using HostQueue = std::vector<std::function<void()>>;

/// Does the calls of a replay when it is finished: in the order in which they were enqueued, or, with a seed, in
/// another one that streams and waits allow.
class HostMachine : public DeviceMachine {
 public:
  explicit HostMachine(std::optional<HalfFormat> half = {}, std::optional<unsigned> seed = {},
                       std::int64_t free_bytes = 1 << 30)
      : seed_(seed), free_(free_bytes), kernels_(make_host_kernels(half, to_queue())) {}
  /// A machine with other kernels than the host's.
  explicit HostMachine(const std::function<std::unique_ptr<DeviceKernels>(HostEnqueue)>& make_kernels)
      : free_(1 << 30), kernels_(make_kernels(to_queue())) {}

  std::int64_t free_bytes() const override { return free_; }
  std::byte* allocate(std::int64_t bytes) override {
    if (bytes > free_) throw RunError("the host has no such memory");
    free_ -= bytes;
    allocated_ += bytes;
    ++allocations_;
    // Room for the alignment of a device's memory.
    memory_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes) + kAlignment));
    void* at = memory_.back().get();
    std::size_t room = static_cast<std::size_t>(bytes) + kAlignment;
    return static_cast<std::byte*>(std::align(kAlignment, static_cast<std::size_t>(bytes), at, room));
  }
  std::byte* allocate_on_host(std::int64_t bytes) override {
    memory_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
    return memory_.back().get();
  }
  void upload(void* to, std::span<const std::byte> from) override {
    require_between_replays();
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const void* from) override {
    require_between_replays();
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void prepare(std::span<const DeviceLane> lanes, std::size_t) override {
    streams_.resize(static_cast<std::size_t>(lanes.back().rank + 1) * kDeviceStreamCount);
  }

  void begin_call(std::size_t index, int rank, DeviceStream stream, const char*) override {
    if (index != calls_.size()) throw RunError("calls are enqueued in their order");
    calls_.emplace_back();
    streams_[static_cast<std::size_t>(rank) * kDeviceStreamCount + static_cast<std::size_t>(stream)].push_back(index);
  }
  void wait_for(std::size_t earlier) override {
    if (earlier + 1 >= calls_.size()) throw RunError("a call waits for one that is not enqueued yet");
    calls_.back().waits.push_back(earlier);
  }
  DeviceKernels& kernels() override { return *kernels_; }
  void end_call() override { calls_.back().work = std::exchange(queue_, {}); }
  std::vector<CallTimes> finish() override {
    if (is_kept_) calls_ = std::move(kept_);
    std::vector<CallTimes> times(calls_.size());
    std::mt19937 random(seed_.value_or(0));
    std::vector<bool> done(calls_.size(), false);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const std::size_t next = seed_ ? any_ready(done, random) : i;
      times[next].start = now();
      for (const auto& kernel : calls_[next].work) kernel();
      times[next].end = now();
      done[next] = true;
    }
    if (keeps_) {
      kept_ = std::move(calls_);
      is_kept_ = true;
    }
    calls_.clear();
    for (std::deque<std::size_t>& stream : streams_) stream.clear();
    return times;
  }

  /// Makes all later replays do the calls of the first one, as a captured graph does.
  void keep_replay() { keeps_ = true; }
  bool keeps_replay() const override { return is_kept_; }

  std::int64_t allocated() const { return allocated_; }
  int allocations() const { return allocations_; }

 protected:
  /// Returns the work that has been enqueued since the last time.
  HostQueue take_queue() { return std::exchange(queue_, {}); }

 private:
  static constexpr std::size_t kAlignment = 512;

  struct Call {
    std::vector<std::size_t> waits;
    HostQueue work;
  };

  HostEnqueue to_queue() {
    return [this](std::function<void()> work) { queue_.push_back(std::move(work)); };
  }

  /// A stream's next call, nothing of whose waits is left.
  std::size_t any_ready(const std::vector<bool>& done, std::mt19937& random) {
    std::vector<std::deque<std::size_t>*> ready;
    for (std::deque<std::size_t>& stream : streams_)
      if (!stream.empty() &&
          std::ranges::all_of(calls_[stream.front()].waits, [&](std::size_t earlier) { return done[earlier]; }))
        ready.push_back(&stream);
    std::deque<std::size_t>& chosen = *ready.at(random() % ready.size());
    const std::size_t call = chosen.front();
    chosen.pop_front();
    return call;
  }

  void require_between_replays() const {
    if (!calls_.empty()) throw RunError("the host touches the device's memory inside a replay");
  }
  SimTime now() const {
    return to_sim_time(std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin_));
  }

  std::optional<unsigned> seed_;
  std::int64_t free_, allocated_ = 0;
  int allocations_ = 0;
  HostQueue queue_;
  std::unique_ptr<DeviceKernels> kernels_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<Call> calls_, kept_;
  bool keeps_ = false, is_kept_ = false;
  std::vector<std::deque<std::size_t>> streams_;  // [rank, stream] calls that are not done
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace plumb::test
