// Pipeline stages: their layers, and how many a rank has.

#include "planner/exchange/facts/derived_fact.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "planner/exchange/facts/stage_names.h"
#include "planner/spec/megatron_layout.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

std::optional<std::int64_t> stages(const Facts& facts) {
  return product(facts, {"pp", "v"});
}

std::vector<int> split_at(const Facts& facts) {
  const json& split = fact_at(facts, "split");
  return split.is_array() ? split.get<std::vector<int>>() : std::vector<int>{};
}

bool is_even(const std::vector<int>& split) {
  return std::ranges::all_of(split, [&](int layers) { return layers == split.front(); });
}

/// "one" stage, "even" stages; unknown where some have more layers than others.
std::optional<json> stage_shares(const Facts& facts) {
  const auto parts = stages(facts);
  if (!parts) return std::nullopt;
  if (*parts == 1) return "one";
  return is_even(split_at(facts)) ? std::optional<json>("even") : std::nullopt;
}

/// Megatron's layout string of uneven stages; empty where all have as many layers.
std::optional<json> megatron_stages(const Facts& facts) {
  const std::vector<int> split = split_at(facts);
  return is_even(split) ? "" : megatron_layout(split, count_at(facts, "model.mtp_modules").value_or(0));
}

void solve_megatron_stages(Learner& learner) {
  if (!learner.value().is_string() || learner.value() == json("")) return;
  const auto pipeline = count_at(learner.facts(), "pp");
  if (!pipeline) return;
  const auto split = [&] {
    try {
      return split_of_megatron_layout(learner.value().get<std::string>());
    } catch (const SpecError& error) {
      throw SpecError(fmt::format("{}: {}", learner.place(), error.what()));
    }
  }();
  learner.learn("split", split);
  learner.learn_quotient("v", std::ssize(split), *pipeline, "the stages of the pipeline layout are no multiple of pp");
}

/// Stages a rank where all have as many layers; 0 where the layout string says it.
std::optional<json> megatron_chunks(const Facts& facts) {
  return is_even(split_at(facts)) ? as_fact(count_at(facts, "v")) : std::optional<json>(0);
}

void solve_megatron_chunks(Learner& learner) {
  if (learner.count() && *learner.count() > 0 && fact_at(learner.facts(), "v").is_null())
    learner.learn("v", *learner.count());
}

void solve_layers_per_chunk(Learner& learner) {
  const auto layers = count_at(learner.facts(), "model.layers"), pipeline = count_at(learner.facts(), "pp");
  if (!learner.count() || !layers || !pipeline) return;
  learner.learn_quotient("v", *layers, *learner.count() * *pipeline, "the layers do not fill the virtual stages");
}

/// Learns the split where Megatron counts the embedding, the loss or both as a layer.
void solve_counted_ends(Learner& learner) {
  const Facts& facts = learner.facts();
  const auto layers = count_at(facts, "model.layers"), parts = stages(facts);
  const int first = is_true(facts, "counts_embedding") ? 1 : 0, last = is_true(facts, "counts_loss") ? 1 : 0;
  if (!layers || !parts || first + last == 0) return;
  const std::int64_t all = *layers + first + last;
  if (*parts < 2 || all % *parts != 0) {
    throw SpecError(fmt::format("{}: {} layers with the ends that count as one are no multiple of {} stages",
                                learner.place(), *layers, *parts));
  }
  std::vector<int> split(static_cast<std::size_t>(*parts), static_cast<int>(all / *parts));
  split.front() -= first;
  split.back() -= last;
  learner.learn("split", split);
}

/// The list of torchtitan's modules; empty where one stage has all.
std::optional<json> torchtitan_stages(const Facts& facts) {
  const std::vector<int> split = split_at(facts);
  return split.size() < 2 ? json::array() : torchtitan_modules(split);
}

/// Without a list torchtitan gives a rank one stage, or two where the schedule is for several.
void solve_torchtitan_stages(Learner& learner) {
  const auto pipeline = count_at(learner.facts(), "pp");
  const json& schedule = fact_at(learner.facts(), "schedule");
  if (!learner.value().is_array() || !pipeline) return;
  if (learner.value().empty()) {
    const bool single = schedule == json("1f1b") || schedule == json("gpipe");
    if (!schedule.is_null() && fact_at(learner.facts(), "v").is_null()) learner.learn("v", single ? 1 : 2);
    return;
  }
  const std::vector<int> split = split_of_torchtitan(learner.value(), learner.place());
  learner.learn("split", split);
  learner.learn_quotient("v", std::ssize(split), *pipeline,
                         "the parts of module_fqns_per_model_part are no multiple of pp");
}

constexpr std::array kStageFacts = {
    DerivedFact{"stage_shares", stage_shares, solve_nothing, "let all stages have as many layers", "split"},
    DerivedFact{"megatron_stages", megatron_stages, solve_megatron_stages, ""},
    DerivedFact{"megatron_chunks", megatron_chunks, solve_megatron_chunks, ""},
    DerivedFact{"layers_per_chunk", derive_nothing, solve_layers_per_chunk, ""},
    DerivedFact{"counts_loss", derive_nothing, solve_counted_ends, ""},
    DerivedFact{"torchtitan_stages", torchtitan_stages, solve_torchtitan_stages, ""},
};

}  // namespace

std::span<const DerivedFact> stage_facts() {
  return kStageFacts;
}

}}  // namespace plumb::planner
