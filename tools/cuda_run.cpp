#include "tools/cuda_run.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "executor/device/open_cuda_library.h"
#include "executor/mpi/launched.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "tools/console.h"

namespace plumb {
namespace {

std::string own_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

}  // namespace

const CudaLibrary& open_cuda() {
  const CudaLibrary& library = open_cuda_library(own_folder(), PLUMB_VERSION);
  cuda_devices(library);
  return library;
}

const CudaLibrary& require_cuda() {
  if (launched_ranks() > 1)
    throw InputError("the cuda backend runs all ranks on one GPU, in one process: start it without mpirun");
  return open_cuda();
}

CudaSharing cuda_sharing(const std::string& sms, bool graph) {
  CudaSharing how{.parts = sms != "all", .graph = graph};
  if (sms == "all" || sms == "even") return how;
  const char* at = sms.data();
  const char* const end = at + sms.size();
  while (true) {
    int share = 0;
    const auto [next, error] = std::from_chars(at, end, share);
    if (error != std::errc() || share < 1 || (next != end && *next != ','))
      throw SpecError(fmt::format("--sms {}: give even, all, or a share of the SMs for each rank, as in 3,1", sms));
    how.shares.push_back(share);
    if (next == end) return how;
    at = next + 1;
  }
}

std::string cuda_device_text(const CudaLibrary& library) {
  const CudaDevice first = cuda_devices(library).front();
  return fmt::format("{}, sm_{}{}, {} SMs, {:.1f} GiB, CUDA {}", first.name, first.major, first.minor,
                     first.multiprocessors, static_cast<double>(first.memory_bytes) / (1 << 30), first.driver);
}

RunResult run_on_cuda(const CudaLibrary& library, const RunSpec& spec, const CudaSharing& how, Seconds expected,
                      const DeviceRunOptions& options) {
  RunResult result;
  std::string sharing;
  const std::string wrong =
      with_progress("running", expected, [&] { return library.run(spec, how, options, result, sharing); });
  if (!wrong.empty()) throw RunError(wrong);
  for (Timeline& timeline : result.timelines) timeline.title += " on " + sharing;
  return result;
}

}  // namespace plumb
