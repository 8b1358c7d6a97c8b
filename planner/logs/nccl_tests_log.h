#pragma once
// The printed log of a program of nccl-tests: all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf,
// broadcast_perf, sendrecv_perf.
//
//   const NcclTestsLog log = parse_nccl_tests_log(text, "all_reduce.log");
//
// The collective is the one that the log names (its own header, or the command line above it), or else the one in the
// file's name; the rows' operation ("redop") must not contradict it. Ranks and nodes are those that "# Using devices"
// lists. Launchers' prefixes ("[1,0]<stdout>: ") and NCCL's own lines are ignored. A size that is printed more than
// once has the median of its times. The columns are those of NVIDIA/nccl-tests src/common.cu; sizes are the whole
// buffer of a rank (the gathered result).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/price/collective/group_placement.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct TimedSize {
  std::int64_t bytes = 0;
  Seconds out_of_place{0};
  Seconds in_place{0};
};

struct NcclTestsLog {
  std::string file;
  std::optional<CollectiveKind> kind;  ///< nothing: send/recv
  GroupPlacement group;
  std::vector<TimedSize> sizes;  ///< ascending, sizes of 0 bytes left out
};

/// Returns true if the text looks like such a log.
bool is_nccl_tests_log(std::string_view text);

/// Reads a log. Throws SpecError "FILE:LINE: ..." if a row has too few columns or the summary at the end is missing
/// (the log was cut), if a row counts wrong values or has a time that is not above 0, if no ranks are listed, if nodes
/// differ in their ranks, or if the collective cannot be told, is none that is priced, or reduces where its rows do
/// not.
NcclTestsLog parse_nccl_tests_log(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
