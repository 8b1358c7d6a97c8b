#pragma once
// A host machine that is one rank of several: its streams are threads, and what it exchanges goes through NCCL on the
// host (host_nccl.h), as CudaMachine does it on a GPU.

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "executor/transport/nccl/linked_calls.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/executor/transport/nccl/host_nccl.h"

namespace plumb::test {

class LinkedHostMachine : public HostMachine {
 public:
  /// Port and links outlive it.
  LinkedHostMachine(HostNccl& port, LinkedCalls& links, std::optional<HalfFormat> half)
      : HostMachine(half), port_(port), links_(links) {}
  ~LinkedHostMachine() override {
    links_.abort();
    for (const NcclPort::Stream stream : streams_)
      if (stream != nullptr) port_.destroy_stream(stream);
  }
  LinkedHostMachine(const LinkedHostMachine&) = delete;
  LinkedHostMachine& operator=(const LinkedHostMachine&) = delete;

  void prepare(std::span<const DeviceLane> lanes, std::size_t calls) override {
    streams_.resize(kDeviceStreamCount);
    for (const DeviceLane& lane : lanes) {
      if (lane.rank != 0) throw RunError("a machine that is one rank of several has one");
      streams_[static_cast<std::size_t>(lane.stream)] = port_.make_stream();
    }
    for (std::size_t call = 0; call < calls; ++call) ends_.push_back(port_.make_event());
  }
  void join(const DeviceGroups& groups) override { links_.join(groups); }

  void begin_call(std::size_t index, int, DeviceStream stream, const char* name) override {
    call_ = index;
    calls_ = index + 1;
    stream_ = streams_[static_cast<std::size_t>(stream)];
    links_.begin_call(static_cast<int>(stream), name);
  }
  void wait_for(std::size_t earlier) override {
    if (earlier >= call_) throw RunError("a call waits for one that is not enqueued yet");
    links_.wait_for(earlier);
    port_.wait(stream_, ends_[earlier]);
  }
  void exchange(const DeviceExchange& exchange) override {
    if (!take_queue().empty()) throw RunError("a call has kernels and an exchange");
    links_.exchange(exchange, stream_, has_ended());
    ++exchanges_;
  }
  void end_call() override {
    if (HostQueue work = take_queue(); !work.empty())
      HostNccl::put(stream_, [this, work = std::move(work)] {
        const std::lock_guard lock(kernels_run_);  // they share scratch memory
        for (const auto& kernel : work) kernel();
      });
    if (in_group_)
      grouped_.emplace_back(call_, stream_);
    else
      port_.record(ends_[call_], stream_);
  }
  void begin_group() override {
    in_group_ = true;
    links_.begin_group();
  }
  void end_group() override {
    in_group_ = false;
    links_.end_group(has_ended());
    for (const auto& [call, stream] : std::exchange(grouped_, {})) port_.record(ends_[call], stream);
  }
  std::vector<CallTimes> finish() override {
    links_.finish(has_ended());
    return std::vector<CallTimes>(calls_);
  }

  int exchanges() const { return exchanges_; }

 private:
  LinkedCalls::HasEnded has_ended() {
    return [this](std::size_t call) { return port_.has_ended(ends_[call]); };
  }

  HostNccl& port_;
  LinkedCalls& links_;
  std::vector<NcclPort::Stream> streams_;
  std::vector<NcclPort::Event> ends_;
  NcclPort::Stream stream_ = nullptr;
  std::size_t call_ = 0, calls_ = 0;
  int exchanges_ = 0;
  bool in_group_ = false;
  std::vector<std::pair<std::size_t, NcclPort::Stream>> grouped_;  // calls whose ends are recorded behind the launch
  std::mutex kernels_run_;
};

}  // namespace plumb::test
