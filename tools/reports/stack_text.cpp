#include "tools/reports/stack_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/stack_conflict.h"

namespace plumb { inline namespace tools {

std::string stack_text(const TrainingSpec& training) {
  if (!training.stack) return "Plumb's own executor";
  const std::string& why = training.stack_assumed;
  const std::string& recipe = training.stack->fp8_recipe;
  const bool named = is_quantized(training.precision) && !recipe.empty();
  return fmt::format("stack {}{}{}", training.stack->name, named ? fmt::format(" ({})", recipe) : "",
                     why.empty() ? "" : fmt::format(", assumed: {}", why));
}

std::vector<std::string> stack_notes(const Pricing& pricing, const Layout& layout) {
  std::vector<std::string> notes;
  for (const Rejection& broken : stack_conflicts(pricing, layout))
    notes.push_back(fmt::format("note: {}; what is predicted is how it would run", broken.reason));
  return notes;
}

void add_stack(nlohmann::ordered_json& answer, const TrainingSpec& training) {
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  answer["stack"] = text(training.stack ? training.stack->name : "");
  answer["stack_assumed"] = text(training.stack_assumed);
}

}}  // namespace plumb::tools
