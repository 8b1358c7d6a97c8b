#pragma once
// A device that is the host: bodies of GPU kernels run with one lane a block, those for tensor cores warp by warp
// (tests/kernels/simt/host_block.h), matrices are multiplied by OpenBLAS. Since no call of a program waits for a later
// one, running them in the order in which they are enqueued is one of the orders that a device may take;
// RaggedHostMachine takes another.

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "executor/device/device_machine.h"
#include "executor/device/kernels/simt_kernels.h"
#include "executor/transport/transport.h"
#include "tests/kernels/simt/host_block.h"

namespace plumb::test {

/// The only lane of its block: nobody to wait for. Races of several lanes are the business of the bodies' own tests.
class LoneThread {
 public:
  LoneThread(int block, int blocks, float& shared) : block_(block), blocks_(blocks), shared_(&shared) {}
  int block() const { return block_; }
  int blocks() const { return blocks_; }
  static int lane() { return 0; }
  static int lanes() { return 1; }
  float* shared() const { return shared_; }
  static void sync() {}

 private:
  int block_, blocks_;
  float* shared_;
};

/// What has been enqueued, in order.
using HostQueue = std::vector<std::function<void()>>;

/// SimtKernels' launcher on the host: enqueues.
template <class S>
class HostLauncher {
 public:
  explicit HostLauncher(HostQueue& queue) : queue_(&queue), products_(std::make_shared<Products>()) {}

  /// Fewer blocks than rows, so that blocks take more than one.
  template <class Body>
  void launch(const Body& body, std::int64_t items, int) {
    queue_->push_back([=] {
      const int blocks = static_cast<int>(std::min<std::int64_t>(items, 3));
      float shared = std::numeric_limits<float>::quiet_NaN();
      for (int block = 0; block < blocks; ++block) body(LoneThread(block, blocks, shared));
    });
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, elements, 1);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    queue_->push_back([=] { run_warps_on_host(body, static_cast<int>(std::min<std::int64_t>(body.items(), 3))); });
  }
  void copy(void* to, const void* from, std::int64_t bytes) {
    queue_->push_back([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }
  void forward(S* y, const S* x, const S* weight, const GemmSize& size) {
    queue_->push_back([=, products = products_] { products->forward(y, x, weight, size); });
  }
  void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& size) {
    queue_->push_back([=, products = products_] { products->input_grad(dx, dy, weight, size); });
  }
  void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    queue_->push_back([=, products = products_] { products->weight_grad(dweight, dy, x, size); });
  }

 private:
  /// Products of stored matrices, in fp32.
  struct Products {
    void forward(S* y, const S* x, const S* weight, const GemmSize& z) {
      linear_forward(room(out, z.m * z.n), wide(left, x, z.m * z.k), wide(right, weight, z.n * z.k), z);
      narrow_to(y);
    }
    void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& z) {
      linear_input_grad(room(out, z.m * z.n), wide(left, dy, z.m * z.k), wide(right, weight, z.k * z.n), z);
      narrow_to(dx);
    }
    void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& z) {
      linear_weight_grad(dweight, wide(left, dy, z.k * z.m), wide(right, x, z.k * z.n), z);
    }

    static float* room(std::vector<float>& buffer, std::int64_t elements) {
      buffer.resize(static_cast<std::size_t>(elements));
      return buffer.data();
    }
    static const float* wide(std::vector<float>& buffer, const S* from, std::int64_t elements) {
      buffer.resize(static_cast<std::size_t>(elements));
      for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = widened(from[i]);
      return buffer.data();
    }
    void narrow_to(S* to) const {
      for (std::size_t i = 0; i < out.size(); ++i) store(to[i], out[i]);
    }

    std::vector<float> out, left, right;
  };

  HostQueue* queue_;
  std::shared_ptr<Products> products_;
};

/// Does the calls of a replay when it is finished: in the order in which they were enqueued, or, with a seed, in
/// another one that streams and waits allow.
class HostMachine : public DeviceMachine {
 public:
  explicit HostMachine(std::optional<HalfFormat> half = {}, std::optional<unsigned> seed = {},
                       std::int64_t free_bytes = 1 << 30)
      : seed_(seed), free_(free_bytes) {
    if (half == HalfFormat::kFp16)
      kernels_ = std::make_unique<SimtKernels<Fp16, HostLauncher<Fp16>>>(HostLauncher<Fp16>(queue_));
    else if (half)
      kernels_ = std::make_unique<SimtKernels<Bf16, HostLauncher<Bf16>>>(HostLauncher<Bf16>(queue_));
    else
      kernels_ = std::make_unique<SimtKernels<float, HostLauncher<float>>>(HostLauncher<float>(queue_));
  }

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
    std::memcpy(to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const void* from) override {
    require_between_replays();
    std::memcpy(to.data(), from, to.size());
  }
  void prepare(int ranks, std::size_t) override {
    streams_.resize(static_cast<std::size_t>(ranks) * kDeviceStreamCount);
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

  /// From now on the calls of the first replay are done in all, as a captured graph's.
  void keep_replay() { keeps_ = true; }
  bool keeps_replay() const override { return is_kept_; }

  std::int64_t allocated() const { return allocated_; }
  int allocations() const { return allocations_; }

 protected:
  /// What has been enqueued since the last time.
  HostQueue take_queue() { return std::exchange(queue_, {}); }

 private:
  static constexpr std::size_t kAlignment = 512;

  struct Call {
    std::vector<std::size_t> waits;
    HostQueue work;
  };

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
