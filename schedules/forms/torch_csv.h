#pragma once
// PyTorch's CSV of torch.distributed.pipelining (2.14), the compute-only form: a row a rank, no header, cells separated
// by commas, an empty cell for an idle slot (order is all that is kept of it). Cells hold F, B, I and W actions,
// or an overlapped pair of a forward and a B or I.
//
//   0F0,0F1,,0B0
//   1F0,1B0,(1F1;2B0)OVERLAP_F_B
//
// Written as PyTorch writes it: rows end in \r\n and nothing is padded.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"

namespace plumb {

struct TorchCsv {
  Schedule schedule;
  std::vector<std::string>
      notes;  ///< what was read and left out (REDUCE_GRAD, which PyTorch writes and its loader refuses)
};

/// Read strictly: a cell must be one action or pair and nothing else.
/// Throws ScheduleError with file, row and column of the first cell that is not, or that the compute-only form has not.
TorchCsv read_torch_csv(std::string_view text, const std::string& file);

/// Throws ScheduleError naming what the form cannot express: operations other than F, B, I, W; slices; pairs other
/// than a forward with a B or I behind it; stages that are copies of one model part; weight policies.
std::string write_torch_csv(const Schedule& schedule);

}  // namespace plumb
