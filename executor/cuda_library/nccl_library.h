#pragma once
// The functions of libplumb_cuda.so for NCCL, beside those of cuda_library.h; NCCL itself is opened when it is first
// used. No exception crosses the library's border: a function that can fail returns the text of the fault.

#include <optional>
#include <string>
#include <vector>

#include "executor/measure/device/measure_nccl.h"
#include "executor/measure/slowdown_sample.h"
#include "executor/spec/run_spec.h"
#include "executor/training/run_result.h"
#include "executor/transport/nccl/rank_board.h"

namespace plumb { inline namespace executor {

/// The measurements of a process's GPUs.
struct NcclMeasurement {
  std::string version;  ///< version of NCCL
  int ranks = 0;
  std::vector<NcclSample> samples;
  std::vector<SlowdownSample> slowdowns;  ///< if there are two GPUs or more
};

struct NcclLibrary {
  const char* version;  ///< version of Plumb
  /// Runs measure_nccl() and measure_nccl_slowdown() over all GPUs of this process, or the first `options.ranks`, with
  /// a thread each, within the budget.
  std::string (*measure)(const NcclMeasureOptions& options, NcclMeasurement& result);
  /// Runs run_linked_rank() for the board's rank on that GPU of this process. Rank 0 gets `result`. `was_told` is set
  /// if another rank has failed, which reports the fault itself. `is_spec` is set if run_linked_rank() refuses the
  /// spec, which it does on all ranks alike.
  std::string (*run_rank)(const RunSpec& spec, RankBoard& board, int device, std::optional<RunResult>& result,
                          bool& was_told, bool& is_spec);
};

inline constexpr const char* kNcclLibraryEntry = "plumb_nccl_library";
using NcclLibraryEntry = const NcclLibrary* (*)();

/// Opens the library beside the tool as open_cuda_library() does, and throws what that throws. Throws RunError, too, if
/// the library was built without NCCL.
const NcclLibrary& open_nccl_library(const std::string& folder, const std::string& version);

}}  // namespace plumb::executor
