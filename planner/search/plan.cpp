#include "planner/search/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/layout_order.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/forms/text_form.h"

namespace plumb { inline namespace planner {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::optional<Schedule> read_order(StrictObject object, Layout& layout) {
  layout.schedule = object.text_or("name", layout.schedule);
  std::optional<Schedule> order;
  if (object.has("actions")) {
    const nlohmann::json& rows = object.raw("actions");
    const bool are_texts =
        rows.is_array() && std::ranges::all_of(rows, [](const auto& row) { return row.is_string(); });
    if (!are_texts) object.fail("actions", "an array of strings is wanted, one for each line of the text form");
    order = parse_schedule(fmt::format("{}\n", fmt::join(rows.get<std::vector<std::string>>(), "\n")), object.place());
  }
  object.finish();
  return order;
}

}  // namespace

Schedule order_of(const Plan& plan) {
  if (!plan.order) return order_of(plan.training, plan.layout);
  const Schedule& order = *plan.order;
  const std::int64_t microbatches = microbatches_of(plan.training, plan.layout);
  if (static_cast<int>(order.ranks.size()) != plan.layout.pipeline || order.microbatches != microbatches) {
    throw SpecError(
        fmt::format("schedule {} has {} ranks and {} micro-batches, but the layout makes {} and {}: change pp, dp "
                    "or mbs, or the schedule",
                    order.name, order.ranks.size(), order.microbatches, plan.layout.pipeline, microbatches));
  }
  return order;
}

Plan plan_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  object.text_or("plumb_version", "");
  const auto place_of = [&object](std::string_view key) { return object.object(key).place(); };
  Plan plan{.model = model_from_json(object.raw("model"), place_of("model")),
            .cluster = cluster_from_json(object.raw("cluster"), place_of("cluster")),
            .training = training_from_json(object.raw("training"), place_of("training")),
            .layout = layout_of(layout_from_json(object.raw("layout"), place_of("layout")))};
  if (object.has("schedule")) plan.order = read_order(object.object("schedule"), plan.layout);
  if (object.has("prediction"))
    plan.prediction = prediction_from_json(object.raw("prediction"), place_of("prediction"));
  object.finish();
  return plan;
}

Plan parse_plan(std::string_view text, const std::string& file) {
  return plan_from_json(parse_file(FileForm::kPlan, text, file), file);
}

nlohmann::ordered_json to_json(const Plan& plan, std::string_view plumb_version) {
  nlohmann::ordered_json schedule{{"name", plan.layout.schedule}};
  if (plan.order) schedule["actions"] = lines_of(to_text(*plan.order));
  nlohmann::ordered_json json{{"plumb_version", plumb_version},
                              {"model", to_json(plan.model)},
                              {"cluster", to_json(plan.cluster)},
                              {"training", to_json(plan.training)},
                              {"layout", to_json(plan.layout)},
                              {"schedule", std::move(schedule)},
                              {"prediction", nullptr}};
  if (plan.prediction) json["prediction"] = to_json(*plan.prediction);
  return json;
}

}}  // namespace plumb::planner
