#include "planner/exchange/run_differences.h"

#include <fmt/format.h>

#include "planner/exchange/forms/plain_value.h"

namespace plumb { inline namespace planner {

std::vector<std::string> run_differences(const ReadRun& run, const Plan& plan) {
  const Facts planned = facts_of(plan.model, plan.training, plan.layout);
  Facts read = facts_of(run.layout);
  if (run.global_batch) read["global_batch"] = *run.global_batch;
  if (run.sequence) read["seq"] = *run.sequence;
  if (run.precision) read["precision"] = precision_name(*run.precision);
  if (run.model) read["model.layers"] = run.model->layers, read["model.hidden"] = run.model->hidden;
  std::vector<std::string> differences;
  for (const auto& [fact, value] : read) {
    const nlohmann::json& ours = fact_at(planned, fact);
    if (value.is_null() || ours.is_null() || plain_text(value) == plain_text(ours)) continue;
    differences.push_back(fmt::format("{} is {} there, and {} in the plan", fact, plain_text(value), plain_text(ours)));
  }
  return differences;
}

}}  // namespace plumb::planner
