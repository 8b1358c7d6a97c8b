#include "executor/cuda_library/cuda_library.h"

#include <exception>

#include <fmt/format.h>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/cuda_machine.h"
#include "executor/training/device/run_device.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor { namespace {

/// Returns the text of the failure of `work`, or "" if it succeeds.
template <class Work>
std::string text_of_failure(Work work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    return sentence_of(error);
  }
}

std::string devices(std::vector<CudaDevice>& found) {
  return text_of_failure([&] {
    int count = 0, driver = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || (error == cudaSuccess && count == 0))
      throw RunError(fmt::format("there is no GPU here that CUDA can use ({}): use --backend cpu",
                                 error == cudaSuccess ? "the driver has none" : cudaGetErrorString(error)));
    cuda::check(error, "the GPUs");
    cuda::check(cudaDriverGetVersion(&driver), "the GPU's driver");
    for (int device = 0; device < count; ++device) {
      cudaDeviceProp properties{};
      cuda::check(cudaGetDeviceProperties(&properties, device), "the GPU");
      found.push_back({.name = properties.name,
                       .major = properties.major,
                       .minor = properties.minor,
                       .multiprocessors = properties.multiProcessorCount,
                       .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                       .driver = fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)});
    }
  });
}

std::string run(const RunSpec& spec, const CudaSharing& how, const DeviceRunOptions& options, RunResult& result,
                std::string& sharing) {
  return text_of_failure([&] {
    cuda::CudaMachine machine(0, spec.half, how);
    result = run_device(spec, machine, options);
    sharing = machine.sharing() + (how.graph ? ", launched as a graph" : "");
  });
}

std::string measure(const DeviceMeasureOptions& options, const CudaSharing& how, DeviceMeasurement& result,
                    std::string& sharing) {
  return text_of_failure([&] {
    cuda::CudaMachine machine(0, options.half, {.parts = how.parts, .shares = how.shares});
    result = measure_device(machine, options);
    sharing = machine.sharing();
  });
}

constexpr CudaLibrary kCudaLibrary{.version = PLUMB_VERSION, .devices = devices, .run = run, .measure = measure};

}}}  // namespace plumb::executor

extern "C" __attribute__((visibility("default"))) const plumb::CudaLibrary* plumb_cuda_library() {
  return &plumb::kCudaLibrary;
}
