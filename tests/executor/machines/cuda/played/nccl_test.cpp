// Programs that hang under NCCL on hardware, and what the played NCCL does with them.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "executor/machines/cuda/cuda_nccl_port.h"
#include "tests/executor/has.h"
#include "tests/executor/machines/cuda/played_run.h"

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using Communicator = NcclPort::Communicator;

/// Two GPUs of this thread, with a stream and a few values on each.
class TwoGpus {
 public:
  TwoGpus() {
    for (int device = 0; device < 2; ++device) {
      cudaSetDevice(device);
      streams[device] = port.make_stream();
      cudaMalloc(&values[device], kBytes);
    }
  }
  ~TwoGpus() {
    for (int device = 0; device < 2; ++device) {
      cudaSetDevice(device);
      cudaFree(values[device]);
      port.destroy_stream(streams[device]);
    }
  }
  TwoGpus(const TwoGpus&) = delete;
  TwoGpus& operator=(const TwoGpus&) = delete;

  /// Returns [device] both ends of a communicator that exists.
  std::array<Communicator, 2> channel(const NcclConfig& config = {}) {
    const NcclId id = port.make_id();
    std::array<Communicator, 2> ends{};
    for (int device = 0; device < 2; ++device) {
      cudaSetDevice(device);
      ends[device] = port.begin_communicator(id, device, 2, config);
    }
    for (const Communicator end : ends)
      while (!port.is_settled(end)) {
      }
    return ends;
  }

  /// GPU 0 receives from GPU 1, which has yet to send.
  void receive(Communicator end, NcclPort::Stream stream) {
    cudaSetDevice(0);
    port.receive({.to = values[0], .elements = kBytes / 4, .peer = 1, .communicator = end, .stream = stream});
  }
  void send(Communicator end) {
    cudaSetDevice(1);
    port.send({.from = values[1], .elements = kBytes / 4, .peer = 0, .communicator = end, .stream = streams[1]});
  }
  bool is_settled_soon(Communicator end) {
    for (int i = 0; i < 100; ++i)
      if (port.is_settled(end)) return true;
    return false;
  }

  static constexpr std::int64_t kBytes = 256;
  cuda::CudaNcclPort port;
  std::array<NcclPort::Stream, 2> streams{};
  std::array<void*, 2> values{};
};

constexpr unsigned kConnectsOnce = 4, kConnectsEachTime = 5;  // seeds (have_called())

}  // namespace

TEST_CASE("a launch is settled only when its peer has called, too") {
  played::restart({.devices = 2, .seed = kConnectsEachTime});
  {
    TwoGpus gpus;
    const auto ends = gpus.channel();
    gpus.receive(ends[0], gpus.streams[0]);
    CHECK(!gpus.is_settled_soon(ends[0]));
    gpus.send(ends[1]);
    CHECK(gpus.is_settled_soon(ends[0]));
    CHECK(gpus.is_settled_soon(ends[1]));
    cudaSetDevice(0);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    gpus.port.abort(ends);
  }
  CHECK(played_faults() == "");
}

TEST_CASE("communicators that are aborted one by one wait for each other's kernels, and in a group they do not") {
  for (const bool in_group : {false, true}) {
    CAPTURE(in_group);
    played::restart({.devices = 2, .seed = kConnectsOnce, .patience = 50ms});
    {
      TwoGpus gpus;
      const NcclPort::Stream beside = (cudaSetDevice(0), gpus.port.make_stream());
      const auto first = gpus.channel(), second = gpus.channel();
      for (const auto& [ends, stream] : {std::pair(first, gpus.streams[0]), std::pair(second, beside)}) {
        gpus.receive(ends[0], stream);
        gpus.send(ends[1]);  // so that they are connected
        while (!gpus.port.is_settled(ends[0]) || !gpus.port.is_settled(ends[1])) {
        }
        gpus.receive(ends[0], stream);
        CHECK(gpus.is_settled_soon(ends[0]));
      }
      cudaSetDevice(0);
      if (in_group) {
        gpus.port.abort(std::vector{first[0], second[0]});
      } else {
        gpus.port.abort({&first[0], 1});
        gpus.port.abort({&second[0], 1});
      }
      gpus.port.destroy_stream(beside);
      gpus.port.abort(std::vector{first[1], second[1]});
    }
    CHECK(has(played_faults(), "waits for what never comes") == !in_group);
  }
}

TEST_CASE("kernels that wait for their peers hold SMs, and where they hold all of them nothing else runs") {
  for (const int blocks : {0, 8}) {  // 0: NCCL's own number
    CAPTURE(blocks);
    played::restart({.devices = 2, .multiprocessors = 24, .seed = kConnectsOnce, .nccl_sms = 24});
    {
      TwoGpus gpus;
      const auto ends = gpus.channel({.most_blocks = blocks});
      gpus.receive(ends[0], gpus.streams[0]);
      gpus.send(ends[1]);
      while (!gpus.port.is_settled(ends[0]) || !gpus.port.is_settled(ends[1])) {
      }
      cudaDeviceSynchronize();
      gpus.receive(ends[0], gpus.streams[0]);
      CHECK(gpus.is_settled_soon(ends[0]));
      cudaSetDevice(0);
      const NcclPort::Stream beside = gpus.port.make_stream();
      bool has_run = false;
      CHECK(played::launch(static_cast<cudaStream_t>(beside), "a kernel", [&] { has_run = true; }) == cudaSuccess);
      for (int i = 0; i < 100; ++i) cudaStreamQuery(static_cast<cudaStream_t>(beside));
      CHECK(has_run == (blocks > 0));
      gpus.port.abort(ends);
      gpus.port.destroy_stream(beside);
    }
    CHECK(played_faults() == "");
  }
}

}  // namespace plumb::test
