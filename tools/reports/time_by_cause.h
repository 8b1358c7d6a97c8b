#pragma once
// The time of a step is divided by its causes.

#include <functional>
#include <string>
#include <vector>

#include "simulator/path/exposed.h"
#include "traces/idle_causes.h"

namespace plumb { inline namespace tools {

/// The causes that some rank spends time on.
struct TimeByCause {
  std::vector<std::string> causes;         ///< "computing", "tensor collectives", "idle: warm-up", ...
  std::vector<std::vector<double>> ranks;  ///< [rank][cause] seconds; a rank's add up to the step
};

/// Divides the time of ranks that are busy for so long and idle for these causes. Where `exposed` is known, the
/// collectives inside actions stand apart from the computing; it may be empty.
TimeByCause time_by_cause(const std::vector<SimTime>& busy, const std::vector<IdleByCause>& idle,
                          const std::vector<ExposedTime>& exposed);

/// Returns a table of the causes, the largest first: the mean of the ranks in seconds and as a share of the step.
/// Causes of less than a thousandth are one row. `text_of` writes a time.
std::string to_text(const TimeByCause& time, const std::function<std::string(double)>& text_of);

}}  // namespace plumb::tools
