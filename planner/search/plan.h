#pragma once
// A plan: everything a run needs to be repeated, and what it is expected to do. A plan file is self-contained; each
// part has the form in which it can be given alone.
//
//   {"plumb_format": 1, "plumb_version": "0.1.0", "model": {...}, "cluster": {...}, "training": {...}, "layout": {...},
//    "schedule": {"name": "1f1b"}, "prediction": {...} or null}
//
// A schedule of the user's own stands there by its rows: {"name": "mine", "actions": ["0F0 0B0", "1F0 1B0"]}, in the
// text form (schedules/forms/text_form.h), a line an entry.

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/prediction.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct Plan {
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  Layout layout;
  std::optional<Schedule> order;  ///< the user's own compute order; nothing: the one that layout.schedule names
  std::optional<Prediction> prediction;
};

/// The compute order that the plan runs. Throws as order_of, and SpecError if the plan's own order has not the layout's
/// ranks or the training's micro-batches.
Schedule order_of(const Plan& plan);

/// Throws SpecError or ScheduleError with the place and remedy of what is wrong. The format number is a file's
/// (schedules/forms/file_format.h): parse_plan() checks it, the other two know of none.
Plan parse_plan(std::string_view text, const std::string& file);
Plan plan_from_json(const nlohmann::json& json, const std::string& place);

nlohmann::ordered_json to_json(const Plan& plan, std::string_view plumb_version);

}}  // namespace plumb::planner
