#pragma once
// The variation of a step under noise, as JSON and as text.

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "simulator/noise/noise.h"

namespace plumb { inline namespace tools {

struct NoiseReport {
  NoiseSpec spec;
  NoisySteps steps;
};

/// Returns the noise that was asked for, the step times with and without it, and the idle time that it adds to each
/// rank.
nlohmann::ordered_json noise_json(const NoiseReport& report);

/// Returns a line of step times and a table by rank. `time` writes a time.
std::string noise_text(const NoiseReport& report, const std::function<std::string(SimTime)>& time);

}}  // namespace plumb::tools
