#pragma once
// Step time and memory from the log of a training run, as the frameworks print them.
//
//   iteration  122/ 250000 | consumed samples: 124928 | elapsed time per iteration (ms): 86545.2 | ...
//   [Rank 0] (after 10 iterations) memory (MB) | allocated: 9000 | max allocated: 9500 | reserved: ... | max reserved:
//   ... step:  4  loss:  7.62585  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%
//
// The logs of Megatron-LM (also Megatron-DeepSpeed), NeMo, torchtitan, nanotron, DeepSpeed's engines, MaxText, Composer
// (llm-foundry), torchtune, OLMo, nanoGPT and the Hugging Face Trainer's last summary are read. Some print a step's
// time, some a throughput. The first printed step warms up and is left out where there are more. Memory is the largest
// that the allocator reserved, over all ranks that print it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/logs/median_estimate.h"
#include "planner/logs/sampled_values.h"

namespace plumb { inline namespace planner {

/// The unit of a log's numbers: seconds of a step, or steps, samples or tokens (of one device) a second.
enum class LogUnit : std::uint8_t { kSeconds, kStepsPerSecond, kSamplesPerSecond, kTokensPerSecondOfDevice };

struct TrainingLog {
  std::string framework;  ///< framework that prints such logs
  std::string file;
  LogUnit unit = LogUnit::kSeconds;
  std::vector<double> values;  ///< one for each printed step, or a sample of them (sampled_values.h)
  std::size_t steps = 0;       ///< how many were printed
  std::optional<std::int64_t> reserved_bytes;
  std::optional<std::int64_t> global_batch;  ///< samples of the last step, where the log prints them
};

/// The size of a step of the run.
struct LoggedStep {
  std::int64_t samples = 1;
  std::int64_t tokens = 1;
  int devices = 1;
};

/// Returns the seconds of such a step, from all printed ones.
MedianEstimate step_seconds(const TrainingLog& log, const LoggedStep& step);

/// Returns true if the text looks like such a log.
bool is_training_log(std::string_view text);

/// Returns the frameworks whose logs are read: "Megatron-LM, NeMo, ...".
std::string training_log_frameworks();

/// Reads a log line by line. It keeps no line, and of a long log a sample of the steps, so that it takes the same memory
/// whatever the log's length.
class TrainingLogReader {
 public:
  explicit TrainingLogReader(std::string file);

  /// Takes the next line, without its end.
  void take(std::string_view line);

  /// Returns what the lines said. Throws SpecError "FILE:LINE: ..." if a step's line ends before its time (the log was
  /// cut), a time is not above 0, or there is no step.
  TrainingLog finish() const;

 private:
  /// The finds of one framework's form in the lines.
  struct Found {
    bool has_step = false;  ///< some line has both the form's mark and its key
    SampledValues values;
    double reserved_bytes = 0;
    std::optional<std::int64_t> global_batch;
    std::string fault;  ///< of the first step that cannot be read; empty: all can
    std::size_t fault_line = 0;
  };
  std::string file_;
  std::size_t line_ = 0;
  std::vector<Found> found_;  ///< [form]
};

/// Reads a log that is at hand as a whole.
TrainingLog parse_training_log(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
