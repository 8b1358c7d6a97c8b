#pragma once
// The facts of a run by name, flat, so that one table can say which setting of a trainer holds which fact
// (exchange/target.h).
//
//   Facts facts = facts_of(model, training, layout);   // facts["tp"] == 2, facts["model.hidden"] == 4096
//   add_derived(facts);                                // facts["devices"] == 16 (exchange/facts/derived_facts.h)
//
// The names are those of the JSON forms: the keys of a layout and of a training, and "model." before those of a model.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// A fact that is not there, or null, is not known.
using Facts = std::map<std::string, nlohmann::json, std::less<>>;

/// Returns the names of the facts of a layout and a training that every target must account for.
const std::vector<std::string>& run_fact_names();

/// Returns every fact of run_fact_names(), "split" as a list, and those of the model. A graph of layers is the one fact
/// "model.graph". A group for ZeRO of all replicas, or without ZeRO, is no group (shard 0): they mean the same.
Facts facts_of(const ModelSpec& model, const TrainingSpec& training, const Layout& layout);

/// Returns the facts of the keys that the request answers.
Facts facts_of(const LayoutRequest& request);

/// Returns null if there is no such fact.
const nlohmann::json& fact_at(const Facts& facts, std::string_view name);

/// Returns the fact as a whole number; nothing if it is not known or none.
std::optional<std::int64_t> count_at(const Facts& facts, std::string_view name);

/// Gives the fact that value if it is not known yet. Throws SpecError "PLACE: ..." if it is known as another.
void learn(Facts& facts, const std::string& name, const nlohmann::json& value, const std::string& place);

/// A run as a trainer's settings say it. They may leave facts open, which the user then says.
struct ReadRun {
  LayoutRequest layout;
  std::optional<std::int64_t> global_batch;
  std::optional<std::int64_t> sequence;
  std::optional<Precision> precision;
  std::optional<Precision> gradient_precision;
  std::optional<Optimizer> optimizer;
  std::optional<ModelSpec> model;
};

/// Returns the run of these facts; its model is called `place`. Throws SpecError as the readers of the JSON forms do.
ReadRun run_of(const Facts& facts, const std::string& place);

}}  // namespace plumb::planner
