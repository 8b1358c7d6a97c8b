#pragma once
// The durations of a step's parts as the timers of trainers print them.
//
//   (min, max) time across ranks (ms):                      Megatron's, by --timing-log-level 1 or 2
//       forward-compute ................................: (400.11, 480.22)
//   max time across ranks (ms):                             the same by --timing-log-option max
//       forward-compute ................................: 480.22
//   [Rank 0] time (ms) | fwd: 97.07 | bwd_inner: 190.4      DeepSpeed's, by wall_clock_breakdown
//
// Sources: NVIDIA/Megatron-LM megatron/core/timers.py, microsoft/DeepSpeed deepspeed/utils/timer.py and
// deepspeed/runtime/engine.py.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/logs/sampled_values.h"

namespace plumb { inline namespace planner {

/// The milliseconds that a timer printed, over the ranks of the run.
struct PrintedTimer {
  std::vector<double> least;  ///< [print], or of a sample of them; the same as `most` where one number is printed
  std::vector<double> most;   ///< [print], or of the same sample
};

/// Reads the timers of a log line by line. It keeps a sample of a long log's, and of at most so many timers.
class TimerTableReader {
 public:
  /// Takes the next line, without its end.
  void take(std::string_view line);

  /// By name. What a timer printed first is left out where it printed more: it warms up.
  std::map<std::string, PrintedTimer> finish() const;

 private:
  static constexpr std::size_t kMostTimers = 1024;
  struct Sampled {
    SampledValues least, most;
  };

  void add(std::string_view name, double least, double most);

  bool in_table_ = false;  ///< the lines behind a head of Megatron's
  std::map<std::string, Sampled, std::less<>> timers_;
};

}}  // namespace plumb::planner
