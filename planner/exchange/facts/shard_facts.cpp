// Shares of state: a stage of ZeRO and its groups, as copies of an optimizer or as the degrees of FSDP.

#include "planner/exchange/facts/derived_fact.h"

#include <array>

#include <fmt/format.h>

#include "planner/exchange/forms/plain_value.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Copies of what ZeRO divides.
std::optional<json> state_copies(const Facts& facts) {
  const auto replicas = product(facts, {"dp", "cp"}), shard = count_at(facts, "shard");
  if (!replicas || !shard) return std::nullopt;
  if (*shard == 0) return 1;
  return *replicas % *shard == 0 ? std::optional<json>(*replicas / *shard) : std::nullopt;
}

void solve_state_copies(Learner& learner) {
  const auto replicas = product(learner.facts(), {"dp", "cp"});
  if (!learner.count()) return;
  if (*learner.count() == 1) return learner.learn("shard", 0);
  if (replicas)
    learner.learn_quotient("shard", *replicas, *learner.count(), "the replicas do not fall into such groups");
}

/// Replicas among which FSDP divides parameters, its ranks of a sequence not counted.
std::optional<json> fsdp_shards(const Facts& facts) {
  const auto zero = count_at(facts, "zero"), data = count_at(facts, "dp"), context = count_at(facts, "cp"),
             shard = count_at(facts, "shard");
  if (!zero || !data || !context || !shard || *zero == 1) return std::nullopt;
  if (*zero == 0) return *context == 1 ? std::optional<json>(1) : std::nullopt;
  if (*shard == 0) return *data;
  return *shard % *context == 0 ? std::optional<json>(*shard / *context) : std::nullopt;
}

std::optional<json> fsdp_copies(const Facts& facts) {
  const auto shards = fsdp_shards(facts);
  const auto data = count_at(facts, "dp");
  if (!shards || !data) return std::nullopt;
  const auto each = shards->get<std::int64_t>();
  return *data % each == 0 ? std::optional<json>(*data / each) : std::nullopt;
}

/// Learns the replicas and their groups from both degrees of FSDP.
void solve_fsdp(Learner& learner) {
  const Facts& facts = learner.facts();
  const auto shards = count_at(facts, "fsdp_shards"), copies = count_at(facts, "fsdp_copies");
  const auto context = count_at(facts, "cp"), zero = count_at(facts, "zero");
  if (!shards && copies && *copies > 0 && count_at(facts, "dp"))
    return learner.learn_quotient("fsdp_shards", *count_at(facts, "dp"), *copies,
                                  "the replicas do not fall into such groups");
  if (!shards || !copies) return;
  if (*shards < 1 || *copies < 1) {
    throw SpecError(
        fmt::format("{}: {} x {} replicas are none: give degrees of 1 or more", learner.place(), *copies, *shards));
  }
  learner.learn("dp", *shards * *copies);
  if (zero && context) learner.learn("shard", *zero == 0 || *copies == 1 ? 0 : *shards * *context);
}

/// The moment when FSDP drops gathered parameters: "always" behind a forward pass, "never" before the step's end, or
/// "none" where nothing is divided.
std::optional<json> fsdp_reshard(const Facts& facts) {
  const auto zero = count_at(facts, "zero");
  if (!zero || *zero == 1) return std::nullopt;
  return *zero == 0 ? "none" : *zero == 2 ? "never" : "always";
}

/// "default" never drops them in pipelines. Source: pytorch/torchtitan torchtitan/models/llama3/infra/parallelize.py.
void solve_fsdp_reshard(Learner& learner) {
  const Facts& facts = learner.facts();
  const std::string when = plain_text(learner.value());
  if (when == "always") return learner.learn("zero", 3);
  if (when == "never") return learner.learn("zero", 2);
  const auto shards = count_at(facts, "fsdp_shards"), context = count_at(facts, "cp"), pipeline = count_at(facts, "pp");
  if (!shards || !context || !pipeline) return;
  learner.learn("zero", *shards * *context == 1 ? 0 : *pipeline > 1 ? 2 : 3);
}

constexpr std::string_view kFsdp =
    "FSDP divides parameters (zero=2 or 3), or replicates them (zero=0, cp=1), among groups (shard) of a multiple of "
    "cp";

constexpr std::array kShardFacts = {
    DerivedFact{"state_copies", state_copies, solve_state_copies, "let shard divide dp x cp", "shard"},
    DerivedFact{"fsdp_shards", fsdp_shards, solve_fsdp, kFsdp, "zero"},
    DerivedFact{"fsdp_copies", fsdp_copies, solve_fsdp, kFsdp, "zero"},
    DerivedFact{"fsdp_reshard", fsdp_reshard, solve_fsdp_reshard, kFsdp, "zero"},
};

}  // namespace

std::span<const DerivedFact> shard_facts() {
  return kShardFacts;
}

}}  // namespace plumb::planner
