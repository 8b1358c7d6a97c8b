#include "executor/cuda_library/open_cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

void set_cuda_environment(bool meets_others) {
  constexpr int kKeepsTheUsers = 0;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeepsTheUsers);
  if (!meets_others) return;
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeepsTheUsers);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", kKeepsTheUsers);
}

const CudaLibrary& open_cuda_library(const std::string& folder, const std::string& version) {
  constexpr const char* kName = "libplumb_cuda.so";
  const std::filesystem::path beside = std::filesystem::path(folder) / kName;
  const bool is_beside = std::filesystem::exists(beside);
  void* handle = dlopen(is_beside ? beside.c_str() : kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    if (is_beside)
      throw RunError(fmt::format("{} does not open ({}): install the CUDA toolkit's libraries, or use --backend cpu",
                                 beside.string(), reason == nullptr ? "no reason given" : reason));
    throw RunError(
        fmt::format("the cuda backend is not here: there is no {} beside the tool; build with -Dcuda=enabled, or use "
                    "--backend cpu",
                    kName));
  }
  const auto entry = reinterpret_cast<CudaLibraryEntry>(dlsym(handle, kCudaLibraryEntry));
  const CudaLibrary* library = entry == nullptr ? nullptr : entry();
  if (library == nullptr || library->version != version)
    throw RunError(fmt::format("the {} that was found is of Plumb {} and the tool is {}: build both together", kName,
                               library == nullptr ? "another kind" : library->version, version));
  return *library;
}

std::vector<CudaDevice> cuda_devices(const CudaLibrary& library) {
  std::vector<CudaDevice> found;
  if (const std::string wrong = library.devices(found); !wrong.empty()) throw RunError(wrong);
  return found;
}

}}  // namespace plumb::executor
