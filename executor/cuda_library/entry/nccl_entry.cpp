// libplumb_cuda.so's functions for NCCL (executor/cuda_library/nccl_library.h).

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "executor/cuda_library/entry/nccl_devices.h"
#include "executor/cuda_library/nccl_library.h"
#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/cuda_machine.h"
#include "executor/machines/cuda/cuda_nccl_port.h"
#include "executor/measure/device/measure_nccl_slowdown.h"
#include "executor/measure/time_left.h"
#include "executor/training/device/run_linked_rank.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor { namespace {

constexpr double kForCollectives = 0.8;  // share of the budget; products beside collectives have the rest

std::string measure(const NcclMeasureOptions& options, NcclMeasurement& result) {
  try {
    const TimeLeft time_left(options.budget);
    result.version = cuda::nccl_version();
    std::int64_t most = 4;
    for (const std::int64_t size : options.sizes_bytes) most = std::max(most, size);
    cuda::NcclGpus gpus(options.ranks, most + 4096);
    result.ranks = gpus.ranks();
    NcclMeasureOptions collectives = options;
    collectives.budget = time_left(gpus.ranks() > 1 ? kForCollectives : 1);
    result.samples = measure_nccl(gpus, collectives);
    const NcclSlowdownOptions slowdown;
    result.slowdowns = measure_nccl_slowdown(
        gpus, {.half = options.half, .most_bytes = std::min(most, slowdown.most_bytes), .budget = time_left()});
    return {};
  } catch (const std::exception& error) {
    return sentence_of(error);
  }
}

/// Returns what tells a GPU apart in NCCL: the host (NCCL_HOSTID, or the running system) and the bus.
std::string device_text(int device) {
  char bus[32] = {};
  cuda::check(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "the GPU");
  const char* given = std::getenv("NCCL_HOSTID");
  std::string host = given == nullptr ? "" : given;
  if (host.empty()) {
    std::ifstream boot("/proc/sys/kernel/random/boot_id");
    std::getline(boot, host);
  }
  return fmt::format("{} of host {}", bus, host);
}

std::string run_rank(const RunSpec& spec, RankBoard& board, int device, std::optional<RunResult>& result,
                     bool& was_told, bool& is_spec) {
  try {
    cuda::check(cudaSetDevice(device), "the GPU");
    cuda::CudaNcclPort port;
    LinkedRank rank{.board = &board, .port = &port, .device = device_text(device)};
    rank.make_machine = [&](LinkedCalls& links) {
      return std::make_unique<cuda::CudaMachine>(device, spec.half, CudaSharing{.parts = false}, &links);
    };
    result = run_linked_rank(spec, rank);
    return {};
  } catch (const RunAborted& error) {
    was_told = true;
    return error.what();
  } catch (const RunError& error) {
    return error.what();
  } catch (const InputError& error) {
    is_spec = true;
    return error.what();
  } catch (const std::exception& error) {
    return sentence_of(error);
  }
}

constexpr NcclLibrary kNcclLibrary{.version = PLUMB_VERSION, .measure = measure, .run_rank = run_rank};

}}}  // namespace plumb::executor

extern "C" __attribute__((visibility("default"))) const plumb::NcclLibrary* plumb_nccl_library() {
  return &plumb::kNcclLibrary;
}
