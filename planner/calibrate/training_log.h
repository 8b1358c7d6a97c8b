#pragma once
// Step time and memory from the log of a training run, as Megatron-LM and torchtitan print them.
//
//   iteration  122/ 250000 | consumed samples: 124928 | elapsed time per iteration (ms): 86545.2 | ...
//   [Rank 0] (after 10 iterations) memory (MB) | allocated: 9000 | max allocated: 9500 | reserved: ... | max reserved:
//   ... step:  4  loss:  7.62585  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%
//
// Megatron prints milliseconds a step, torchtitan tokens a second and device. The first printed step warms up and is
// left out where there are more. Memory is the largest that the allocator reserved, over all ranks that print it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/time.h"

namespace plumb {

struct TrainingLog {
  enum class Stack { kMegatron, kTorchtitan } stack = Stack::kMegatron;
  std::string file;
  std::vector<double> step_seconds;       ///< Megatron
  std::vector<double> tokens_per_second;  ///< torchtitan, of one device
  std::optional<std::int64_t> reserved_bytes;
};

/// A median, and one standard error of it: 1.2533 s / sqrt(n), the large-sample one of normal noise.
struct MedianEstimate {
  double value = 0;
  std::optional<double> standard_error;  ///< nothing for one observation
  int observations = 0;
};
MedianEstimate median_of(std::vector<double> values);

/// Seconds of a step of `tokens` on `devices`.
MedianEstimate step_seconds(const TrainingLog& log, std::int64_t tokens, int devices);

/// True if the text looks like such a log.
bool is_training_log(std::string_view text);

/// Throws SpecError "FILE:LINE: ..." if a step's line ends before its time (the log was cut), a time is not above 0, or
/// there is no step.
TrainingLog parse_training_log(std::string_view text, const std::string& file);

}  // namespace plumb
