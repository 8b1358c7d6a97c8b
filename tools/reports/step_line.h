#pragma once
// An answer begins with a line that says what a step is predicted to take.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// The figures of the line. Those that are not known are left out.
struct StepLine {
  std::string time;  ///< "6.29 s a step"
  std::optional<double> tokens_per_s;
  std::optional<double> samples_per_s;  ///< named where there are no tokens
  std::optional<double> mfu_ratio;
  double bubble_ratio = 0;
  std::optional<double> peak_bytes;  ///< of the rank that fills its device most
  double limit_bytes = 0;            ///< that the device has for tensors
};

/// Returns "6.29 s a step, 166822 tokens/s, MFU 61.1 %, bubble 2.2 %, 72.5 of 79.1 GiB (8 % free)".
std::string to_text(const StepLine& line);

/// Returns "72.5 of 79.1 GiB (8 % free)", or by how much the peak is above the limit.
std::string memory_text(double peak_bytes, double limit_bytes);

/// Returns the line of a plan's step.
StepLine step_line(const Plan& plan, const StepSums& step, const StepRates& rates);

/// The bytes that a pipeline rank holds at most, and those that its device has for tensors.
struct HeldMemory {
  std::size_t rank = 0;
  double peak = 0;
  double limit = 0;
};

/// Returns the rank that fills its device most.
HeldMemory tightest_memory(const Plan& plan, const std::vector<std::int64_t>& peak_bytes);

/// Returns the bytes that each device has for tensors; 0 if they differ.
double common_memory_limit(const ClusterSpec& cluster);

/// Returns the bytes that a device has for tensors: its memory without what driver and runtime take.
double memory_for_tensors(const DeviceSpec& device);

}}  // namespace plumb::tools
