#pragma once
// What crosses the border of libplumb_cuda.so, which the tool opens at run time (open_cuda_library.h): the device
// executor on a GPU. Both sides come from one build and carry its version. No exception crosses: a function that can
// fail returns what was wrong, and an empty text if nothing was.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/measure/measure_device.h"
#include "executor/device/run_device.h"
#include "executor/run_result.h"
#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

struct CudaDevice {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::string driver;  ///< the CUDA version that the driver serves, e.g. "13.0"
};

/// How ranks share a GPU.
struct CudaSharing {
  bool parts = true;        ///< each on SMs of its own (a green context), where the driver allows it
  std::vector<int> shares;  ///< [rank] of the SMs, to one another; empty: even
  bool graph = false;       ///< a replay is captured as a CUDA graph, and launched from the second on
};

/// The calls run on the first device. `sharing` becomes what they did with it, "green contexts of 64 and 64 SMs".
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

/// The symbol that the library has.
inline constexpr const char* kCudaLibraryEntry = "plumb_cuda_library";
using CudaLibraryEntry = const CudaLibrary* (*)();

}}  // namespace plumb::executor
