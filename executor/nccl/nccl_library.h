#pragma once
// What libplumb_cuda.so has of NCCL, beside what cuda_library.h says; NCCL itself is opened when it is first used. No
// exception crosses: a function that can fail returns what was wrong.

#include <string>
#include <vector>

#include "executor/nccl/measure_nccl.h"

namespace plumb {

struct NcclLibrary {
  const char* version;  ///< of Plumb
  /// All GPUs of this process, or the first `options.ranks`, with a thread each.
  std::string (*measure)(const NcclMeasureOptions& options, std::vector<NcclSample>& samples,
                         std::string& nccl_version);
};

inline constexpr const char* kNcclLibraryEntry = "plumb_nccl_library";
using NcclLibraryEntry = const NcclLibrary* (*)();

/// Opens the library beside the tool as open_cuda_library() does, and throws as that; RunError too if it was built
/// without NCCL.
const NcclLibrary& open_nccl_library(const std::string& folder, const std::string& version);

}  // namespace plumb
