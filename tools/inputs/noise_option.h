#pragma once
// The `--noise` option says how durations vary.
//
//   parse_noise("cv=0.05")
//   parse_noise("cv=0.03,rank_cv=0.02,comm_cv=0.2,dist=gamma,runs=5000,seed=7")

#include <string_view>

#include "simulator/noise/noise.h"

namespace plumb { inline namespace tools {

/// Reads the keys cv, rank_cv, comm_cv, dist, runs and seed; the option does not set the number of replicas. Throws
/// SpecError with the entry if a key is unknown (with the nearest known one) or given twice, or its value cannot be
/// read, and if none of the three cv is given.
NoiseSpec parse_noise(std::string_view text);

}}  // namespace plumb::tools
