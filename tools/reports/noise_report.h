#pragma once
// How a step varies, as JSON and as text.

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "simulator/noise/noise.h"

namespace plumb { inline namespace tools {

struct NoiseReport {
  NoiseSpec spec;
  NoisySteps steps;
};

/// What was asked, step times with and without noise, and what each rank waits more.
nlohmann::ordered_json noise_json(const NoiseReport& report);

/// A line of step times and a table by rank. `time` writes a time.
std::string noise_text(const NoiseReport& report, const std::function<std::string(SimTime)>& time);

}}  // namespace plumb::tools
