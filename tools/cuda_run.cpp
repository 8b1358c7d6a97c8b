#include "tools/cuda_run.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "executor/device/open_cuda_library.h"
#include "executor/mpi/launched.h"
#include "executor/transport.h"
#include "tools/console.h"

namespace plumb {
namespace {

std::string own_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

}  // namespace

const CudaLibrary& require_cuda(const RunArguments& arguments) {
  if (!arguments.checkpoint.empty())
    throw InputError("the cuda backend writes no checkpoints yet: leave --checkpoint-dir away, or use --backend cpu");
  if (launched_ranks() > 1)
    throw InputError("the cuda backend runs all ranks on one GPU, in one process: start it without mpirun");
  const CudaLibrary& library = open_cuda_library(own_folder(), PLUMB_VERSION);
  cuda_devices(library);
  return library;
}

std::string cuda_device_text(const CudaLibrary& library) {
  const CudaDevice first = cuda_devices(library).front();
  return fmt::format("{}, sm_{}{}, {} SMs, {:.1f} GiB, CUDA {}", first.name, first.major, first.minor,
                     first.multiprocessors, static_cast<double>(first.memory_bytes) / (1 << 30), first.driver);
}

RunResult run_on_cuda(const CudaLibrary& library, const RunSpec& spec, Seconds expected) {
  RunResult result;
  const std::string wrong = with_progress("running", expected, [&] { return library.run(spec, result); });
  if (!wrong.empty()) throw RunError(wrong);
  return result;
}

}  // namespace plumb
