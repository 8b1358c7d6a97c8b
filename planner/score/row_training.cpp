#include "planner/score/row_training.h"

#include <algorithm>
#include <string>
#include <utility>

#include "planner/score/row_fields.h"
#include "planner/spec/assumed_stack.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Returns true if a rule of the mapping fills such a field: then the mapping is at fault, not the row.
bool fills(const SourceMapping* mapping, const std::string& prefix, const json* value = nullptr) {
  const auto says = [&](const std::pair<std::string, json>& field) {
    return field.first.starts_with(prefix) && (!value || field.second == *value);
  };
  return mapping && std::ranges::any_of(mapping->rules, [&](const MappingRule& rule) {
           return std::ranges::any_of(rule.fill, says) || std::ranges::any_of(rule.correct, says);
         });
}

/// Returns the stack that the row or its mapping names, or else the one that is assumed of such a training.
std::optional<StackSpec> stack_of(RowReader& reader, const ModelSpec& model, const ClusterSpec& cluster,
                                  const Layout& layout) {
  std::string name = reader.text("stack");
  if (name.empty()) {
    const auto assumed = assumed_stack(model, cluster, layout);
    if (!assumed) throw Unmapped{fmt::format("no framework is described for {}: name one", cluster.device.name)};
    name = assumed->name;
    reader.assumptions.push_back(fmt::format("no framework is named: {} is assumed ({})", name, assumed->because));
  }
  const json named = name;
  if (!reader.library.stacks.contains(name) && !fills(reader.mapping, "stack", &named)) {
    throw Unmapped{fmt::format("there is no stack \"{}\": plumb stacks lists those there are", name)};
  }
  const json stack = preset_of(reader.library.stacks, name, "stack");
  StackSpec spec = stack_from_json(overridden(reader.library, stack, "stack"), "stack " + name);
  const json& with = value_at(reader.row, "stack_with");
  if (with.is_null()) return spec;
  if (!with.is_object()) throw Unmapped{"stack_with is no object: write {\"FIGURE\": VALUE}"};
  json own = stack;
  own.update(with);
  const auto make = [&] { return stack_from_json(overridden(reader.library, own, "stack"), "stack " + name); };
  return fills(reader.mapping, "stack_with") ? make() : of_row(make);
}

}  // namespace

TrainingSpec training_of(RowReader& reader, const ModelSpec& model, const ClusterSpec& cluster, const Layout& layout) {
  TrainingSpec training{.sequence = reader.count("model.seq").value_or(model.sequence)};
  if (training.sequence < 1) throw Unmapped{"the length of a sequence is not printed"};
  const auto batch = reader.count("gbs");
  const auto microbatches = reader.count("n_microbatches") ? reader.count("n_microbatches") : reader.count("ga");
  if (batch) {
    training.global_batch = *batch;
  } else if (microbatches) {
    training.global_batch = *microbatches * layout.data * layout.microbatch;
  } else {
    throw Unmapped{"the global batch is not printed"};
  }
  const std::string precision = reader.text("precision");
  const auto known = precision_in(precision);
  if (!known && !precision.empty()) throw Unmapped{fmt::format("precision \"{}\" cannot be predicted", precision)};
  if (!known && cluster.device.peak_flops_per_second.contains(Precision::kFp8)) {
    throw Unmapped{"the precision is not printed, and the device has fp8"};
  }
  if (!known) reader.assumptions.push_back("the precision is bf16");
  training.precision = known.value_or(Precision::kBf16);
  if (const std::string gradient = reader.text("gradient_precision"); !gradient.empty()) {
    training.gradient_precision = of_row([&] { return precision_from_name(gradient, "gradient_precision"); });
  }
  if (const std::string optimizer = reader.text("optimizer"); !optimizer.empty()) {
    training.optimizer = of_row([&] { return optimizer_from_name(optimizer, "optimizer"); });
  }
  training.stack = stack_of(reader, model, cluster, layout);
  if (const std::string recipe = reader.text("fp8_recipe"); training.stack->fp8_recipes.contains(recipe))
    training.stack = with_fp8_recipe(*training.stack, recipe);
  return training;
}

}}  // namespace plumb::planner
