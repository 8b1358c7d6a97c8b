// Programs that hang, or lose what they could overlap, on hardware, and what the played CUDA says of them.

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/executor/has.h"
#include "tests/executor/machines/cuda/played/held_work.h"
#include "tests/executor/machines/cuda/played_run.h"

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

cudaStream_t made_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

cudaError_t launch_nothing(cudaStream_t stream) {
  return played::launch(stream, "a kernel", [] {});
}

}  // namespace

TEST_CASE("a launch waits while its stream's queue is full, and hangs where the queue stays full") {
  for (const bool ends : {true, false}) {
    played::restart({.patience = 50ms, .launch_queue = 8});
    const cudaStream_t stream = made_stream();
    HeldWork held(stream, ends ? 40 : HeldWork::kForEver);
    cudaError_t last = cudaSuccess;
    for (int i = 0; i < 20 && last == cudaSuccess; ++i) last = launch_nothing(stream);
    CHECK(played::counts().full_queues > 0);
    CHECK((last == cudaSuccess) == ends);
    CHECK(has(played_faults(), "a kernel: waits for what never comes") == !ends);
    held.end();
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  }
}

TEST_CASE("streams that share a hardware queue wait for each other's work, which they do not depend on") {
  for (const int connections : {2, 3}) {
    CAPTURE(connections);
    played::restart({.connections = connections});
    const std::vector<cudaStream_t> streams = {made_stream(), made_stream(), made_stream()};
    HeldWork held(streams[1]);
    cudaEvent_t behind = nullptr;
    REQUIRE(cudaEventCreate(&behind) == cudaSuccess);
    CHECK(cudaEventRecord(behind, streams[1]) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(streams[0], behind, 0) == cudaSuccess);
    bool has_run = false;
    CHECK(played::launch(streams[2], "a kernel", [&] { has_run = true; }) == cudaSuccess);
    for (int i = 0; i < 100; ++i) cudaEventQuery(behind);
    CHECK(has_run == (connections == 3));
    held.end();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(has_run);
    for (const cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaEventDestroy(behind) == cudaSuccess);
    CHECK(played_faults() == "");
  }
}

TEST_CASE("memory that is freed, and code that is loaded, wait for work that waits for its peers") {
  for (const bool frees : {true, false}) {
    played::restart({.patience = 50ms, .loads_late = true});
    const cudaStream_t stream = made_stream(), other = made_stream();
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 256) == cudaSuccess);
    HeldWork held(stream);
    CHECK((frees ? cudaFree(memory) : launch_nothing(other)) == cudaErrorLaunchTimeout);
    CHECK(has(played_faults(),
              frees ? "cudaFree: waits for what never comes" : "the code of a kernel: waits for what never comes"));
    held.end();
    CHECK(cudaFree(memory) == cudaSuccess);
    for (const cudaStream_t one : {stream, other}) CHECK(cudaStreamDestroy(one) == cudaSuccess);
  }
}

}  // namespace plumb::test
