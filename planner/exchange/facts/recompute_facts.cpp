// Full recomputation, by Megatron's two keys: "uniform" rebuilds chunks of so many layers, of one here, and "block" the
// first so many layers of each stage. Source: NVIDIA/Megatron-LM megatron/training/arguments.py.

#include "planner/exchange/facts/derived_fact.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

bool is_full(const Facts& facts) {
  return fact_at(facts, "recompute") == json("full");
}

std::optional<json> method_of(const Facts& facts) {
  const json& layers = fact_at(facts, "recompute_layers");
  if (!is_full(facts)) return "none";
  if (!layers.is_number_integer()) return std::nullopt;
  return layers.get<std::int64_t>() > 0 ? "block" : "uniform";
}

std::optional<json> layers_of(const Facts& facts) {
  const json& layers = fact_at(facts, "recompute_layers");
  if (!is_full(facts)) return 0;
  if (!layers.is_number_integer()) return std::nullopt;
  return std::max<std::int64_t>(layers.get<std::int64_t>(), 1);
}

void solve_method(Learner& learner) {
  if (learner.value() != json("block")) learner.learn("recompute_layers", 0);
}

void solve_layers(Learner& learner) {
  const json& method = fact_at(learner.facts(), "recompute_method");
  const auto layers = learner.count();
  if (method == json("block") && layers == 0)
    throw SpecError(
        fmt::format("{}: the method block rebuilds so many layers of a stage: give their number", learner.place()));
  if (method == json("block") && layers) learner.learn("recompute_layers", *layers);
  if (method == json("uniform") && layers && *layers > 1)
    throw SpecError(
        fmt::format("{}: chunks of {} layers that are rebuilt together are not modelled: give chunks of 1, or "
                    "the method block",
                    learner.place(), *layers));
}

constexpr std::array kRecomputeFacts = {
    DerivedFact{"recompute_method", method_of, solve_method, ""},
    DerivedFact{"rebuilt_layers", layers_of, solve_layers, ""},
};

}  // namespace

std::span<const DerivedFact> recompute_facts() {
  return kRecomputeFacts;
}

}}  // namespace plumb::planner
