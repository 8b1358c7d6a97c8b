#pragma once
// One plan over a grid of other circumstances.
//
//   whatif(plan, {parse_variation("network.bandwidth_gb_per_s=25,50,100"), parse_variation("devices=16,32")},
//          {.replan = true});
//
// A key is a dotted path into the plan's file: model.*, cluster.*, training.*, layout.*. The first word may be left out
// where the rest is found in one of them only ("network.bandwidth_gb_per_s", "seq", "pp"). A whole part may be varied
// as well: "model", "cluster" and "stack" take the values that a Variation has in `parts`. The number of replicas
// follows the devices and the other degrees, unless it varies itself.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/plan.h"
#include "planner/spec/assumed_stack.h"

namespace plumb { inline namespace planner {

struct Variation {
  std::string key;
  std::vector<nlohmann::json> values;  ///< numbers, booleans or strings
  /// [value] JSON of a whole part of the plan, which the value names; null is no stack. Empty: the values are the
  /// field's.
  std::vector<nlohmann::json> parts;
};

/// The parts that are varied as a whole.
inline constexpr std::array<std::string_view, 3> kVariedParts = {"model", "cluster", "stack"};

/// True for a path to a name, a source or a note: what tells a reader what something is, and changes no answer.
bool is_label(std::string_view path);

/// "KEY=a,b,c"; a value that is no JSON number or boolean is a string. Throws SpecError if there is no key or no value.
Variation parse_variation(std::string_view text);

struct WhatIfOptions {
  bool replan = false;     ///< search the best layout of each row; layout keys that vary are fixed, all others open
  StackLibrary assumable;  ///< stacks of which one is assumed anew for each row of a plan whose own was assumed
  /// Gives the intervals of a row's prediction (evaluate/error_bar.h); empty: rows have none.
  std::function<PredictionIntervals(const Plan&, const StepSums&)> intervals;
};

struct WhatIfRow {
  std::vector<std::pair<std::string, nlohmann::json>> values;  ///< of the keys that vary, in the order given
  Layout layout;
  std::string stack;                     ///< name of the framework; empty: Plumb's own executor
  std::optional<Prediction> prediction;  ///< nothing: the row is infeasible
  std::string infeasible;
};

/// A row for each combination, the last key changing fastest. Throws SpecError if a key is not found or in several
/// parts (they are named) or a label, a value is refused there, or a plan with a schedule of its own is to be
/// replanned.
std::vector<WhatIfRow> whatif(const Plan& plan, const std::vector<Variation>& variations,
                              const WhatIfOptions& options = {});

}}  // namespace plumb::planner
