#pragma once
// A profile of PyTorch's profiler (Kineto): the kernels of one rank by kind, and the actions of its pipeline schedule.
//
//   const ProfilerTrace trace = read_profiler_trace(stream, "rank0.json");
//   trace.seconds[kGemm]          // a step's mean
//
// Steps are those of torch.profiler.profile(...).step(), which the trace calls "ProfilerStep#12". Kernels that run at the
// same time count once (logs/profiled_kind.h). A schedule of torch.distributed.pipelining marks its actions as "PP:0F3".
// The file is read as a stream: a kernel takes 16 bytes, whatever else the trace says of it.

#include <array>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/logs/profiled_kind.h"
#include "schedules/action.h"

namespace plumb { inline namespace planner {

struct ProfilerTrace {
  std::vector<double> step_seconds;                  ///< [step]
  std::array<double, kProfiledKindCount> seconds{};  ///< [ProfiledKind] of a step, the mean
  double idle_seconds = 0;                           ///< of a step, the mean, in which no kernel runs
  std::map<Op, double> op_seconds;                   ///< of a step, the mean; empty: no action is marked
};

/// Returns true if the text begins as a trace does: a JSON object, or an array of them. Lines of logs may begin with "[".
bool is_json_begin(std::string_view text);

/// Throws InputError "FILE: ..." if the stream is no trace or is cut short, if it has no step or no kernel, or if it has
/// more than kMostKernels or kMostSteps.
ProfilerTrace read_profiler_trace(std::istream& stream, const std::string& file);

inline constexpr std::size_t kMostKernels = std::size_t{1} << 25;
inline constexpr std::size_t kMostSteps = std::size_t{1} << 20;

}}  // namespace plumb::planner
