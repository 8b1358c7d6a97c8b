#pragma once
// The JSON form holds everything that a schedule holds, and implies nothing.
//
//   {"name": "mine", "weights": "current", "microbatches": 2,
//    "stages": [{"rank": 0, "model_part": 0, "lane": 0}, {"rank": 1, "model_part": 1, "lane": 0}],
//    "ranks": ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]}
//
// A row is a rank's actions in the text form (forms/text_form.h). A file has its format number in front
// (file_format.h), which parse_schedule_json() checks.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// schedule_from_json(schedule_to_json(s), ...) == s. Reading throws SpecError with file and path for a document that
/// is not in this form, and ScheduleError for a token that is no action.
nlohmann::ordered_json schedule_to_json(const Schedule& schedule);
Schedule schedule_from_json(const nlohmann::json& json, const std::string& place);
Schedule parse_schedule_json(std::string_view text, const std::string& file);

}}  // namespace plumb::schedules
