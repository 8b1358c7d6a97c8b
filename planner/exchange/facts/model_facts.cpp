// A model's sizes, as Megatron and Llama-like configurations put them.

#include "planner/exchange/facts/derived_fact.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "planner/exchange/forms/plain_value.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

std::optional<json> position_kind(const Facts& facts) {
  const auto positions = count_at(facts, "model.positions"), rotary = count_at(facts, "model.rotary_size");
  if (!positions || !rotary || (*positions > 0 && *rotary > 0)) return std::nullopt;
  return *positions > 0 ? "learned" : *rotary > 0 ? "rotary" : "none";
}

void solve_position_kind(Learner& learner) {
  const std::string kind = plain_text(learner.value());
  if (kind != "learned") learner.learn("model.positions", 0);
  if (kind != "rotary") learner.learn("model.rotary_size", 0);
}

std::optional<json> position_limit(const Facts& facts) {
  const auto positions = count_at(facts, "model.positions");
  if (!positions) return std::nullopt;
  return as_fact(*positions > 0 ? positions : count_at(facts, "seq"));
}

void solve_position_limit(Learner& learner) {
  if (learner.count() && fact_at(learner.facts(), "position_kind") == json("learned"))
    learner.learn("model.positions", *learner.count());
}

/// Share of a head that RoPE turns.
std::optional<json> rotary_share(const Facts& facts) {
  const auto rotary = count_at(facts, "model.rotary_size"), head = count_at(facts, "model.head_size");
  if (!rotary || !head || *head < 1 || is_true(facts, "is_latent") || count_at(facts, "model.kv_rank").value_or(0) > 0)
    return std::nullopt;
  return static_cast<double>(*rotary) / static_cast<double>(*head);
}

void solve_rotary_share(Learner& learner) {
  const auto head = count_at(learner.facts(), "model.head_size");
  if (!head || !learner.value().is_number() || is_true(learner.facts(), "is_latent") ||
      fact_at(learner.facts(), "position_kind") != json("rotary"))
    return;
  learner.learn("model.rotary_size",
                static_cast<std::int64_t>(std::llround(learner.value().get<double>() * static_cast<double>(*head))));
}

/// The linear layers with a bias: "all", "qkv" or "none".
std::optional<json> biases(const Facts& facts) {
  const bool linear = is_true(facts, "model.linear_bias"), qkv = is_true(facts, "model.qkv_bias");
  if (linear && !qkv) return std::nullopt;
  return linear ? "all" : qkv ? "qkv" : "none";
}

void solve_biases(Learner& learner) {
  const std::string which = plain_text(learner.value());
  learner.learn("model.linear_bias", which == "all");
  learner.learn("model.qkv_bias", which != "none");
}

std::optional<json> usual_head(const Facts& facts) {
  const auto hidden = count_at(facts, "model.hidden"), heads = count_at(facts, "model.heads");
  if (!hidden || !heads || *heads < 1 || *hidden % *heads != 0) return std::nullopt;
  return *hidden / *heads;
}

std::optional<json> is_latent(const Facts& facts) {
  return count_at(facts, "model.kv_rank").value_or(0) > 0;
}

/// True where queries and keys are normed head by head, or, in latent attention, behind their compression, for which
/// Megatron has one argument.
std::optional<json> head_norms(const Facts& facts) {
  if (is_latent(facts) == json(true)) return true;
  const json& norms = fact_at(facts, "model.query_key_norms");
  if (norms.is_null()) return false;
  return norms == json("each_head") ? std::optional<json>(true) : std::nullopt;
}

void solve_head_norms(Learner& learner) {
  if (learner.value() == json(true) && !is_true(learner.facts(), "is_latent") &&
      is_latent(learner.facts()) != json(true))
    learner.learn("model.query_key_norms", "each_head");
}

/// Channels of a head of latent attention that RoPE leaves alone.
std::optional<json> plain_head(const Facts& facts) {
  const auto head = count_at(facts, "model.head_size"), rotary = count_at(facts, "model.rotary_size");
  return head && rotary ? std::optional<json>(*head - *rotary) : std::nullopt;
}

void solve_plain_head(Learner& learner) {
  const auto rotary = count_at(learner.facts(), "model.rotary_size");
  if (learner.count() && rotary) learner.learn("model.head_size", *learner.count() + *rotary);
}

/// Returns Megatron's pattern of layers where the last of each `period` has experts.
std::string periodic_pattern(std::int64_t layers, std::int64_t period) {
  return fmt::format("([0]*{}+[1]*1)*{}", period - 1, layers / period);
}

/// Megatron's pattern of dense layers and layers of experts; empty where all have experts, or none. It has no word for
/// dense layers before a period, nor for one that does not divide the layers.
std::optional<json> expert_pattern(const Facts& facts) {
  const auto layers = count_at(facts, "model.layers"), dense = count_at(facts, "model.dense_layers");
  const std::int64_t period = count_at(facts, "model.experts_every").value_or(1);
  if (!layers || !dense) return "";
  if (period > 1) {
    if (*dense > 0 || *layers % period != 0) return std::nullopt;
    return periodic_pattern(*layers, period);
  }
  return *dense == 0 ? "" : fmt::format("([0]*{}+[1]*{})", *dense, *layers - *dense);
}

void solve_expert_pattern(Learner& learner) {
  const Facts& facts = learner.facts();
  const auto layers = count_at(facts, "model.layers");
  if (!layers || count_at(facts, "model.experts").value_or(0) == 0) return;
  const std::string pattern = plain_text(learner.value());
  if (pattern.empty() || pattern == "1") return learner.learn("model.dense_layers", 0);
  for (std::int64_t dense = 1; dense < *layers; ++dense) {
    if (pattern == fmt::format("([0]*{}+[1]*{})", dense, *layers - dense))
      return learner.learn("model.dense_layers", dense);
  }
  for (std::int64_t period = 2; period <= *layers; ++period) {
    if (*layers % period == 0 && pattern == periodic_pattern(*layers, period)) {
      learner.learn("model.dense_layers", 0);
      return learner.learn("model.experts_every", period);
    }
  }
  throw SpecError(
      fmt::format("{}: the pattern of experts \"{}\" is neither ([0]*D+[1]*N), dense layers before all others, nor "
                  "([0]*D+[1]*1)*N, experts in the last layer of each period: other patterns are not modelled",
                  learner.place(), pattern));
}

constexpr std::array kModelFacts = {
    DerivedFact{"position_kind", position_kind, solve_position_kind, "give learned or rotary positions, not both",
                "model.positions"},
    DerivedFact{"position_limit", position_limit, solve_position_limit, ""},
    DerivedFact{"rotary_share", rotary_share, solve_rotary_share, ""},
    DerivedFact{"biases", biases, solve_biases, "let the biases be of all linear layers, of QKV alone, or of none",
                "model.linear_bias"},
    DerivedFact{"usual_head", usual_head, solve_nothing, ""},
    DerivedFact{"is_latent", is_latent, solve_nothing, ""},
    DerivedFact{"head_norms", head_norms, solve_head_norms, "norm each head by itself, or no head",
                "model.query_key_norms"},
    DerivedFact{"plain_head", plain_head, solve_plain_head, ""},
    DerivedFact{"expert_pattern", expert_pattern, solve_expert_pattern,
                "let experts_every divide the layers, and dense_layers be 0", "model.experts_every"},
};

}  // namespace

std::span<const DerivedFact> model_facts() {
  return kModelFacts;
}

}}  // namespace plumb::planner
