#include <dlfcn.h>

#include <filesystem>

#include "executor/cuda_library/nccl_library.h"
#include "executor/cuda_library/open_cuda_library.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

const NcclLibrary& open_nccl_library(const std::string& folder, const std::string& version) {
  open_cuda_library(folder, version);  // throws with the reason if the library is unfit
  const std::filesystem::path beside = std::filesystem::path(folder) / "libplumb_cuda.so";
  void* handle = dlopen(std::filesystem::exists(beside) ? beside.c_str() : "libplumb_cuda.so", RTLD_NOW | RTLD_LOCAL);
  const auto entry = handle == nullptr ? nullptr : reinterpret_cast<NcclLibraryEntry>(dlsym(handle, kNcclLibraryEntry));
  if (entry == nullptr)
    throw RunError("libplumb_cuda.so was built without NCCL: build with -Dnccl=enabled where nccl.h is installed");
  return *entry();
}

}}  // namespace plumb::executor
