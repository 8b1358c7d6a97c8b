#pragma once
// The border of libplumb_cuda.so, the device executor on a GPU, which the tool opens at run time (open_cuda_library.h).
// Both sides come from one build and carry its version. No exception crosses: a function that can fail returns the text
// of its fault, which is empty if there is none.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/machines/cuda_sharing.h"
#include "executor/measure/device/measure_device.h"
#include "executor/spec/run_spec.h"
#include "executor/training/device/run_device.h"
#include "executor/training/run_result.h"

namespace plumb { inline namespace executor {

struct CudaDevice {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::string driver;  ///< the CUDA version that the driver serves, e.g. "13.0"
};

/// The functions of the library, which run on the first device. `sharing` gets how ranks shared it, "green contexts of
/// 64 and 64 SMs".
struct CudaLibrary {
  const char* version;  ///< of Plumb
  std::string (*devices)(std::vector<CudaDevice>& found);
  /// run_device().
  std::string (*run)(const RunSpec& spec, const CudaSharing& how, const DeviceRunOptions& options, RunResult& result,
                     std::string& sharing);
  /// measure_device().
  std::string (*measure)(const DeviceMeasureOptions& options, const CudaSharing& how, DeviceMeasurement& result,
                         std::string& sharing);
};

/// Name of the symbol that the library has.
inline constexpr const char* kCudaLibraryEntry = "plumb_cuda_library";
using CudaLibraryEntry = const CudaLibrary* (*)();

}}  // namespace plumb::executor
