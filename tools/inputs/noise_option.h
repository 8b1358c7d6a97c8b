#pragma once
// The `--noise` option: how durations vary.
//
//   parse_noise("cv=0.05")
//   parse_noise("cv=0.03,rank_cv=0.02,comm_cv=0.2,dist=gamma,runs=5000,seed=7")

#include <string_view>

#include "simulator/noise/noise.h"

namespace plumb { inline namespace tools {

/// Keys cv, rank_cv, comm_cv, dist, runs and seed; replicas are not the option's. Throws SpecError naming the entry:
/// unknown key (with the nearest known), twice, a value that is none; and if none of the three cv is given.
NoiseSpec parse_noise(std::string_view text);

}}  // namespace plumb::tools
