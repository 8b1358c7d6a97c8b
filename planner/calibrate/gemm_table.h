#pragma once
// A table of measured matrix products:
//
//   m,n,k,layout,tflops
//   4096,10240,8192,TN,1451.6
//
// Columns stand by name in any order: m, n, k and one of tflops, us. The layout is TN (y = x W^T, also where there is
// no such column), NN (its input gradient) or NT (its weight gradient). Other columns, lines that begin with # and
// empty lines are ignored.

#include <string>
#include <string_view>
#include <vector>

#include "traces/measurement.h"

namespace plumb { inline namespace planner {

/// Returns true if the first line that is no comment names m, n and k.
bool is_gemm_table(std::string_view text);

/// Returns samples of the kernel "gemm", one for each row. Throws SpecError "FILE:LINE: ..." if a column is missing, a
/// row does not have the head's cells, a size is no number above 0, the layout is unknown, or the time is not above 0.
std::vector<KernelSample> parse_gemm_table(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
