#pragma once
// PyTorch's CSV of torch.distributed.pipelining (2.14) has a row for each rank, no header, and cells separated by
// commas.
//
//   0F0,0F1,,0B0                          compute-only: F, B, I, W, overlapped pairs. An empty cell is an idle slot;
//   1F0,1B0,(1F1;2B0)OVERLAP_F_B          only the order is kept.
//
//   0UNSHARD,0F0,0SEND_F0,0RECV_B0,...    compute-comms: also messages, UNSHARD, RESHARD, REDUCE_GRAD; no empty cells.
//
// The cells say which of the two a file is. Files are written as PyTorch writes them: rows end in \r\n and nothing is
// padded.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

enum class TorchReading : std::uint8_t {
  kStrict,   ///< a cell is one action or pair and nothing else
  kLenient,  ///< PyTorch's reading: text behind an action in its cell is dropped, and a note says so
};

struct TorchCsv {
  Schedule schedule;
  std::vector<std::string> notes;  ///< cells that were read and left out
};

/// Throws ScheduleError with file, row and column of the first cell that is no action or pair, or that is empty in the
/// compute-comms form. REDUCE_GRAD in a compute-only file, which PyTorch writes and its loader refuses, is left out.
TorchCsv read_torch_csv(std::string_view text, const std::string& file, TorchReading reading = TorchReading::kStrict);

/// Returns the compute-comms form if the schedule has messages or collectives, the compute-only form otherwise. Throws
/// ScheduleError naming the first thing that PyTorch cannot express: other operations (OPTIMIZER_STEP, R, ...), slices
/// and buckets, pairs other than a forward with a B or I behind it, stages that are copies of one model part, weight
/// policies.
std::string write_torch_csv(const Schedule& schedule);

}}  // namespace plumb::schedules
