#pragma once
// How the partition of a measured graph is printed.

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "planner/partition/stage.h"
#include "tools/inputs/measured_input.h"

namespace plumb { inline namespace tools {

struct MeasuredAnswer {
  std::optional<StagePartition> partition;
  std::size_t downsets = 0;   ///< at which it was cut; 0 as PipeDream
  bool all_downsets = false;  ///< these are all, so that no partition is faster
};

nlohmann::ordered_json measured_json(const std::string& file, const MeasuredInput& input, const MeasuredAnswer& answer);

std::string measured_text(const std::string& file, const MeasuredInput& input, const MeasuredMachines& machines,
                          const MeasuredAnswer& answer);

/// Returns the share by which any partition could be faster, at most: the work spread evenly over all devices is.
double most_faster(const MeasuredInput& input, const MeasuredMachines& machines, const StagePartition& partition);

}}  // namespace plumb::tools
