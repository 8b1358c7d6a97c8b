#include "planner/search/whatif.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/price/pricing.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/search.h"
#include "schedules/error.h"
#include "schedules/limits.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

const std::vector<std::string> kPlanParts = {"model", "cluster", "training", "layout"};

std::vector<std::string> words_of(std::string_view path) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    words.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

/// Collects what can be varied by name: the leaves of the parts but labels, by dotted path.
void collect_leaves(const json& value, const std::string& path, std::vector<std::string>& leaves) {
  const bool sourced = value.is_object() && value.contains("value");
  if (!value.is_object() || sourced) {
    if (!value.is_array() && !value.is_null() && !is_label(path)) leaves.push_back(path);
    return;
  }
  for (const auto& [key, inner] : value.items()) collect_leaves(inner, path.empty() ? key : path + "." + key, leaves);
}

/// Returns the path of a part that is varied as a whole.
std::string path_of_part(const std::string& key) {
  return key == "stack" ? "training.stack" : key;
}

/// The full path that a key means.
std::string resolve(const std::vector<std::string>& leaves, const std::string& key) {
  if (key == "gpus") return "cluster.devices";
  if (is_label(key)) {
    throw SpecError(fmt::format(
        "vary {}: another label changes no answer: vary the figures that it stands for, or ask `plumb plan` for each "
        "preset",
        key));
  }
  std::vector<std::string> found;
  for (const std::string& leaf : leaves) {
    if (leaf == key) return leaf;
    if (leaf.substr(leaf.find('.') + 1) == key) found.push_back(leaf);
  }
  if (found.size() == 1) return found.front();
  if (!found.empty()) {
    throw SpecError(
        fmt::format("vary {}: several parts of the plan have it: name one of {}", key, fmt::join(found, ", ")));
  }
  throw SpecError(fmt::format("vary {}: no part of the plan has it: {}", key, did_you_mean(key, leaves)));
}

json& at_path(json& document, const std::string& path) {
  json* place = &document;
  for (const std::string& word : words_of(path)) place = &(*place)[word];
  return *place;
}

/// Adds the prediction's intervals where the options give them.
void add_intervals(WhatIfRow& row, const Plan& plan, const WhatIfOptions& options) {
  if (row.prediction && options.intervals) row.prediction->intervals = options.intervals(plan, row.prediction->step);
}

std::string stack_name(const TrainingSpec& training) {
  return training.stack ? training.stack->name : "";
}

/// `plan` may lack the stack that is assumed of its layout.
WhatIfRow evaluated_row(Pricing& pricing, Plan plan, const WhatIfOptions& options) {
  Evaluation evaluation =
      evaluate(pricing, plan, std::nullopt, {.simulation = {.record_timeline = false}, .network = NetworkOptions{}});
  plan.training = pricing.training_in(plan.layout);
  WhatIfRow row{
      .layout = plan.layout, .stack = stack_name(plan.training), .infeasible = std::move(evaluation.infeasible)};
  if (row.infeasible.empty()) row.prediction = prediction_of(evaluation);
  add_intervals(row, plan, options);
  return row;
}

WhatIfRow replanned_row(Pricing& pricing, const LayoutRequest& fixed, const WhatIfOptions& options) {
  SearchResult found = search_layouts(pricing, fixed, {.keep = 1});
  if (found.ranked.empty())
    return {.layout = layout_of(fixed),
            .stack = stack_name(pricing.training_in(layout_of(fixed))),
            .infeasible = std::move(found.infeasible)};
  const Plan best = plan_of(pricing, found.ranked.front(), std::nullopt);
  WhatIfRow row{.layout = best.layout, .stack = stack_name(best.training), .prediction = best.prediction};
  add_intervals(row, best, options);
  return row;
}

/// Returns the number of each variation's value in that row of the grid, the last one's changing fastest.
std::vector<std::size_t> chosen_values(const std::vector<Variation>& variations, std::int64_t row) {
  std::vector<std::size_t> chosen(variations.size());
  auto rest = static_cast<std::size_t>(row);
  for (std::size_t i = variations.size(); i-- > 0;) {
    chosen[i] = rest % variations[i].values.size();
    rest /= variations[i].values.size();
  }
  return chosen;
}

/// The plan of a row in JSON, and the keys of its layout that vary.
struct VariedPlan {
  json document;
  json fixed_layout = json::object();
};

/// Lets the number of replicas follow the devices and the other degrees of a plan in JSON, where these divide them.
void fit_replicas(json& document) {
  json& layout = document["layout"];
  std::int64_t of_a_replica = 1;
  for (const char* degree : {"tp", "pp", "cp"}) {
    const json value = layout.value(degree, json(1));
    if (!value.is_number_integer() || value < 1) return;  // it is refused where the plan is read
    of_a_replica *= value.get<std::int64_t>();
  }
  const json& devices = document["cluster"]["devices"];
  if (!devices.is_number_integer() || devices < 1) return;
  const auto count = devices.get<std::int64_t>();
  if (count % of_a_replica == 0) layout["dp"] = count / of_a_replica;
}

VariedPlan varied_plan(const json& document, const std::vector<Variation>& variations,
                       const std::vector<std::string>& paths, const std::vector<std::size_t>& chosen) {
  VariedPlan varied{.document = document};
  for (std::size_t i = 0; i < variations.size(); ++i) {  // parts come before the fields inside of them
    if (variations[i].parts.empty()) continue;
    at_path(varied.document, paths[i]) = variations[i].parts[chosen[i]];
    if (variations[i].key == "stack") varied.document["training"].erase("stack_assumed");
  }
  for (std::size_t i = 0; i < variations.size(); ++i) {
    if (!variations[i].parts.empty()) continue;
    const json& value = variations[i].values[chosen[i]];
    at_path(varied.document, paths[i]) = value;
    if (paths[i].starts_with("layout.")) varied.fixed_layout[words_of(paths[i])[1]] = value;
    if (paths[i] == "layout.schedule") varied.document["schedule"]["name"] = value;
  }
  if (!varied.fixed_layout.contains("dp")) fit_replicas(varied.document);
  return varied;
}

/// Returns the row of a plan. A stack that was assumed is assumed anew where the options say of which, unless it varies
/// itself.
WhatIfRow row_of(const VariedPlan& varied, bool varies_stack, const WhatIfOptions& options) {
  Plan plan = plan_from_json(varied.document, "vary");
  const bool assumes = !varies_stack && !options.assumable.empty() && !plan.training.stack_assumed.empty();
  if (assumes) {
    plan.training.stack.reset();
    plan.training.stack_assumed.clear();
  }
  Pricing pricing(plan.model, plan.cluster, plan.training, assumes ? options.assumable : StackLibrary{});
  return options.replan ? replanned_row(pricing, layout_from_json(varied.fixed_layout, "vary: layout"), options)
                        : evaluated_row(pricing, std::move(plan), options);
}

}  // namespace

bool is_label(std::string_view path) {
  const std::string last = words_of(path).back();
  return last == "name" || last == "source" || last == "note";
}

Variation parse_variation(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    throw SpecError(fmt::format("vary \"{}\": write KEY=a,b,c, such as network.bandwidth_gb_per_s=25,50", text));
  }
  Variation variation{.key = std::string(text.substr(0, equals))};
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string word(text.substr(start, end - start));
    const json value = json::parse(word, nullptr, false);
    if (word.empty()) throw SpecError(fmt::format("vary \"{}\": a value is empty: give one between the commas", text));
    variation.values.push_back(value.is_number() || value.is_boolean() ? value : json(word));
    start = end + 1;
  }
  return variation;
}

std::vector<WhatIfRow> whatif(const Plan& plan, const std::vector<Variation>& variations,
                              const WhatIfOptions& options) {
  if (options.replan && plan.order) {
    throw SpecError(
        "a plan with a schedule of its own cannot be replanned: ask without replanning, or drop the schedule");
  }
  const json document = to_json(plan, "");
  const json all_keys = [&] {
    json parts;
    for (const std::string& part : kPlanParts) parts[part] = document.at(part);
    return parts;
  }();
  std::vector<std::string> leaves;
  collect_leaves(all_keys, "", leaves);
  std::vector<std::string> paths;
  std::int64_t combinations = 1;
  for (const Variation& variation : variations) {
    paths.push_back(variation.parts.empty() ? resolve(leaves, variation.key) : path_of_part(variation.key));
    combinations *= std::min<std::int64_t>(std::ssize(variation.values), kMostWhatIfRows + 1);
    if (combinations > kMostWhatIfRows) {
      throw SpecError(fmt::format("vary {}: its {} values make more than {} rows with those before: vary fewer at once",
                                  variation.key, variation.values.size(), kMostWhatIfRows));
    }
  }

  const bool varies_stack =
      std::ranges::any_of(paths, [](const std::string& path) { return path.starts_with("training.stack"); });
  std::vector<WhatIfRow> rows;
  for (std::int64_t combination = 0; combination < combinations; ++combination) {
    const std::vector<std::size_t> chosen = chosen_values(variations, combination);
    WhatIfRow row = row_of(varied_plan(document, variations, paths, chosen), varies_stack, options);
    for (std::size_t i = 0; i < variations.size(); ++i)
      row.values.emplace_back(paths[i], variations[i].values[chosen[i]]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}}  // namespace plumb::planner
