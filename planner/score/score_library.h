#pragma once
// The data with which rows are read: mappings, presets, measured products, and figures that replace those of presets.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/score/source_mapping.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

/// A figure of the presets that another replaces: "cluster.device.gemm_efficiency", "stack.kernel_launch_us".
using Override = std::pair<std::string, nlohmann::json>;

/// The data with which rows are mapped, in the JSON forms of their specs.
struct ScoreLibrary {
  std::vector<SourceMapping> mappings;
  std::map<std::string, nlohmann::json> models;
  std::map<std::string, nlohmann::json> clusters;
  std::map<std::string, nlohmann::json> stacks;
  std::shared_ptr<const nlohmann::json> dims;                ///< sizes by the `dims_key` of rows; null: none were given
  std::map<std::string, std::vector<KernelSample>> samples;  ///< measured products by ClusterRule::table
  std::vector<Override> overrides;                           ///< figures of every cluster and stack
  /// {"mbs": [1, 2, 4]}: values of fields that neither row nor mapping gives, as a rule's `search`; null: none.
  std::shared_ptr<const nlohmann::json> open_fields;
  RowConditions only;  ///< conditions of the rows that are asked for; empty: all
};

}}  // namespace plumb::planner
