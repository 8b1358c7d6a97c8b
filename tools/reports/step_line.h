#pragma once
// An answer begins with a line that says what a step is predicted to take.

#include <optional>
#include <string>

#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// The figures of the line. Those that are not known are left out.
struct StepLine {
  std::string time;  ///< "6.29 s a step"
  std::optional<double> tokens_per_s;
  std::optional<double> samples_per_s;  ///< named where there are no tokens
  std::optional<double> mfu_ratio;
  double bubble_ratio = 0;
  std::optional<double> peak_bytes;  ///< of the fullest rank
  double limit_bytes = 0;            ///< that a device has for tensors
};

/// Returns "6.29 s a step, 166822 tokens/s, MFU 61.1 %, bubble 2.2 %, 72.5 of 79.1 GiB (8 % free)".
std::string to_text(const StepLine& line);

/// Returns "72.5 of 79.1 GiB (8 % free)", or by how much the peak is above the limit.
std::string memory_text(double peak_bytes, double limit_bytes);

/// Returns the line of a plan's step.
StepLine step_line(const Plan& plan, const StepSums& step, const StepRates& rates);

/// Returns the bytes that a device has for tensors: its memory without what driver and runtime take.
double memory_for_tensors(const DeviceSpec& device);

}}  // namespace plumb::tools
