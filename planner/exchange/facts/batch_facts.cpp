// Devices and batches: a launcher counts processes, and an engine micro-batches.

#include "planner/exchange/facts/derived_fact.h"

#include <array>

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

std::optional<json> devices(const Facts& facts) {
  return as_fact(product(facts, {"dp", "tp", "pp", "cp"}));
}

void solve_devices(Learner& learner) {
  const auto model_ranks = product(learner.facts(), {"tp", "pp", "cp"});
  if (learner.count() && model_ranks)
    learner.learn_quotient("dp", *learner.count(), *model_ranks, "the devices are no multiple of tp x pp x cp");
}

void solve_nodes(Learner& learner) {
  if (const auto all = product(learner.facts(), {"nodes", "devices_per_node"})) learner.learn("devices", *all);
}

std::optional<json> microbatches(const Facts& facts) {
  const auto batch = count_at(facts, "global_batch"), together = product(facts, {"dp", "mbs"});
  if (!batch || !together || *together < 1 || *batch % *together != 0) return std::nullopt;
  return *batch / *together;
}

void solve_microbatches(Learner& learner) {
  const auto together = product(learner.facts(), {"dp", "mbs"});
  if (learner.count() && together) learner.learn("global_batch", *learner.count() * *together);
  const auto batch = count_at(learner.facts(), "global_batch"), microbatch = count_at(learner.facts(), "mbs");
  if (learner.count() && batch && microbatch)
    learner.learn_quotient("dp", *batch, *learner.count() * *microbatch,
                           "the batch is no multiple of the micro-batches");
}

/// Sequences that a replica is handed at once: all of its batch where it is a pipeline, a micro-batch otherwise.
std::optional<json> call_batch(const Facts& facts) {
  const auto pipeline = count_at(facts, "pp"), batch = count_at(facts, "global_batch"), data = count_at(facts, "dp");
  if (!pipeline) return std::nullopt;
  if (*pipeline == 1) return as_fact(count_at(facts, "mbs"));
  if (!batch || !data || *batch % *data != 0) return std::nullopt;
  return *batch / *data;
}

void solve_call_batch(Learner& learner) {
  const auto pipeline = count_at(learner.facts(), "pp"), data = count_at(learner.facts(), "dp");
  if (!learner.count() || !pipeline) return;
  if (*pipeline == 1) return learner.learn("mbs", *learner.count());
  if (data && fact_at(learner.facts(), "global_batch").is_null())
    learner.learn("global_batch", *learner.count() * *data);
}

/// The micro-batch of a pipeline; 0 where there is none.
std::optional<json> pipeline_microbatch(const Facts& facts) {
  const auto pipeline = count_at(facts, "pp");
  if (!pipeline) return std::nullopt;
  return *pipeline == 1 ? std::optional<json>(0) : as_fact(count_at(facts, "mbs"));
}

void solve_pipeline_microbatch(Learner& learner) {
  const auto pipeline = count_at(learner.facts(), "pp");
  if (pipeline && *pipeline > 1 && learner.count() && *learner.count() > 0) learner.learn("mbs", *learner.count());
}

constexpr std::string_view kPacked = "let dp x mbs divide the global batch";

constexpr std::array kBatchFacts = {
    DerivedFact{"devices", devices, solve_devices, ""},
    DerivedFact{"nodes", derive_nothing, solve_nodes, ""},
    DerivedFact{"microbatches", microbatches, solve_microbatches, kPacked, "global_batch"},
    DerivedFact{"call_batch", call_batch, solve_call_batch, kPacked, "global_batch"},
    DerivedFact{"pipeline_microbatch", pipeline_microbatch, solve_pipeline_microbatch, ""},
};

}  // namespace

std::span<const DerivedFact> batch_facts() {
  return kBatchFacts;
}

}}  // namespace plumb::planner
