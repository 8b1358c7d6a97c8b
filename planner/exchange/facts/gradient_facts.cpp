// The number format of gradients, by two flags of Megatron's.

#include "planner/exchange/facts/derived_fact.h"

#include <array>
#include <string>

#include "planner/exchange/forms/plain_value.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// fp16 gradients go with fp16 weights alone.
std::optional<json> fp32_gradients(const Facts& facts) {
  const std::string gradients = plain_text(fact_at(facts, "gradient_precision"));
  const bool as_weights = gradients == "fp16" && fact_at(facts, "precision") == json("fp16");
  if (gradients != "fp32" && gradients != "bf16" && !as_weights) return std::nullopt;
  return gradients == "fp32";
}

std::optional<json> bf16_gradients(const Facts& facts) {
  return fact_at(facts, "gradient_precision") == json("bf16");
}

/// Megatron accumulates gradients in fp32 where the weights are in bf16, unless it is told to reduce them in bf16.
/// Source: NVIDIA/Megatron-LM megatron/training/arguments.py, validate_args.
void solve_gradients(Learner& learner) {
  const Facts& facts = learner.facts();
  const json &wide = fact_at(facts, "fp32_gradients"), &narrow = fact_at(facts, "bf16_gradients"),
             &precision = fact_at(facts, "precision");
  if (wide.is_null() || narrow.is_null() || precision.is_null()) return;
  if (narrow == json(true)) return learner.learn("gradient_precision", "bf16");
  learner.learn("gradient_precision", wide == json(true) || precision != json("fp16") ? "fp32" : "fp16");
}

constexpr std::array kGradientFacts = {
    DerivedFact{"fp32_gradients", fp32_gradients, solve_gradients, "give gradient_precision=fp32 or bf16",
                "gradient_precision"},
    DerivedFact{"bf16_gradients", bf16_gradients, solve_nothing, ""},
};

}  // namespace

std::span<const DerivedFact> gradient_facts() {
  return kGradientFacts;
}

}}  // namespace plumb::planner
