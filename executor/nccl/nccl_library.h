#pragma once
// What libplumb_cuda.so has of NCCL, beside what cuda_library.h says; NCCL itself is opened when it is first used. No
// exception crosses: a function that can fail returns what was wrong.

#include <optional>
#include <string>
#include <vector>

#include "executor/measure/slowdown_sample.h"
#include "executor/nccl/measure_nccl.h"
#include "executor/nccl/rank_board.h"
#include "executor/run_result.h"
#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

/// What the GPUs of a process have shown.
struct NcclMeasurement {
  std::string version;  ///< of NCCL
  int ranks = 0;
  std::vector<NcclSample> samples;
  std::vector<SlowdownSample> slowdowns;  ///< of two GPUs or more
};

struct NcclLibrary {
  const char* version;  ///< of Plumb
  /// measure_nccl() and measure_nccl_slowdown() over all GPUs of this process, or the first `options.ranks`, with a
  /// thread each, within the budget.
  std::string (*measure)(const NcclMeasureOptions& options, NcclMeasurement& result);
  /// run_linked_rank() of the board's rank on that GPU of this process. `result` is rank 0's; `was_told`: another rank
  /// has failed, and says so itself. Refuses what run_linked_rank() refuses with `is_spec`: the same on all ranks.
  std::string (*run_rank)(const RunSpec& spec, RankBoard& board, int device, std::optional<RunResult>& result,
                          bool& was_told, bool& is_spec);
};

inline constexpr const char* kNcclLibraryEntry = "plumb_nccl_library";
using NcclLibraryEntry = const NcclLibrary* (*)();

/// Opens the library beside the tool as open_cuda_library() does, and throws as that; RunError too if it was built
/// without NCCL.
const NcclLibrary& open_nccl_library(const std::string& folder, const std::string& version);

}}  // namespace plumb::executor
