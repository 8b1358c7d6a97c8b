#include "schedules/forms/json_form.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/schedule_shape.h"
#include "schedules/forms/strict_json.h"
#include "schedules/forms/text_form.h"
#include "schedules/limits.h"

namespace plumb { inline namespace schedules {
namespace {

/// Reads a list of rows, each a string of actions or a list of them; the rest of the schedule follows from the actions.
Schedule schedule_from_rows(const nlohmann::json& rows, const std::string& place) {
  Schedule schedule;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string row;
    if (rows[r].is_string()) row = rows[r].get<std::string>();
    for (const nlohmann::json& action : rows[r].is_array() ? rows[r] : nlohmann::json::array()) {
      if (!action.is_string()) {
        throw ScheduleError(
            fmt::format("{}: row {} holds something that is no string: write actions, as in \"0F0\"", place, r));
      }
      row += action.get<std::string>() + " ";
    }
    if (!rows[r].is_string() && !rows[r].is_array()) {
      throw ScheduleError(
          fmt::format("{}: row {} is no list of actions: write [\"0F0\", \"0B0\"] or \"0F0 0B0\"", place, r));
    }
    schedule.ranks.push_back(parse_row(row, fmt::format("{}: row {}", place, r)));
  }
  infer_shape(schedule);
  return schedule;
}

}  // namespace

nlohmann::ordered_json schedule_to_json(const Schedule& schedule) {
  auto stages = nlohmann::ordered_json::array();
  for (const StagePlace& place : schedule.stages) {
    stages.push_back({{"rank", place.rank}, {"model_part", place.model_part}, {"lane", place.lane}});
  }
  auto ranks = nlohmann::ordered_json::array();
  for (const std::vector<Action>& actions : schedule.ranks) ranks.push_back(row_text(actions));
  return {{"name", schedule.name},
          {"weights", policy_name(schedule.weights)},
          {"microbatches", schedule.microbatches},
          {"stages", stages},
          {"ranks", ranks}};
}

Schedule schedule_from_json(const nlohmann::json& json, const std::string& place) {
  if (json.is_array()) return schedule_from_rows(json, place);
  StrictObject object(json, place);
  Schedule schedule{.name = object.text_or("name", ""),
                    .microbatches = static_cast<int>(object.positive_integer("microbatches", kMostForwards))};
  if (object.has("weights")) {
    schedule.weights =
        *policy_from_name(object.choice("weights", {"current", "stashed", "vertical_sync", "two_buffered"}));
  }
  for (StrictObject& stage : object.objects("stages")) {
    schedule.stages.push_back({.rank = static_cast<int>(stage.non_negative_integer("rank", kLargestStage)),
                               .model_part = static_cast<int>(stage.non_negative_integer("model_part", kLargestStage)),
                               .lane = static_cast<int>(stage.non_negative_integer_or("lane", 0, kLargestStage))});
    stage.finish();
  }
  const nlohmann::json& ranks = object.raw("ranks");
  if (!ranks.is_array()) object.fail("ranks", "an array of rows is wanted, as in [\"0F0 0B0\"]");
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].is_string())
      object.fail("ranks", fmt::format("row {} is no string: write its actions, as in \"0F0 0B0\"", r));
    schedule.ranks.push_back(parse_row(ranks[r].get<std::string>(), fmt::format("{}: ranks[{}]", place, r)));
  }
  object.finish();
  return schedule;
}

Schedule parse_schedule_json(std::string_view text, const std::string& file) {
  return schedule_from_json(parse_file(FileForm::kSchedule, text, file), file);
}

}}  // namespace plumb::schedules
