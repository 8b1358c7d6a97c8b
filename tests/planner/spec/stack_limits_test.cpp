#include "planner/spec/stack_limits.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/spec/stack_spec.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("limits survive their JSON form, and what is left out is not limited") {
  const StackLimits limits{.zero = {0, 1},
                           .zero_in_pipelines = {0},
                           .recompute = {Recompute::kNone, Recompute::kFull},
                           .schedules = {"1f1b", "zb-h1"},
                           .tensor_across_nodes = false,
                           .context_kinds = {ContextKind::kUlysses},
                           .experts = false,
                           .shard_groups = false,
                           .offload = {{.activations = true}},
                           .offload_needs_zero = true,
                           .equal_stages = true,
                           .named_splits = false};
  CHECK(stack_limits_from_json(to_json(limits), "again") == limits);
  CHECK(stack_limits_from_json(nlohmann::json::object(), "empty") == StackLimits{});
  CHECK(stack_limits_from_json({{"offload", nlohmann::json::array()}}, "none").offload.empty());
  const StackLimits pipelines = stack_limits_from_json({{"zero", {0, 1}}}, "pipelines");
  CHECK(pipelines.zero_in_pipelines == std::vector{0, 1});  // as without pipelines
}

TEST_CASE("bad limits are refused with their place") {
  const auto refused = [](const nlohmann::json& json, const char* part) {
    check_refused<SpecError>([&] { stack_limits_from_json(json, "s.json: can"); }, "s.json: can", part);
  };
  refused({{"zero", {4}}}, "there is no ZeRO stage 4");
  refused({{"zero", nlohmann::json::array()}}, "give 0 for none");
  refused({{"schedules", {"2f2b"}}}, "there is no schedule \"2f2b\"");
  refused({{"schedules", {1}}}, "an array of names");
  refused({{"context_kinds", {"p2p"}}}, "ring, all-gather, ulysses");
  refused({{"offload", {"cpu"}}}, "optimizer+activations");
  refused({{"offload", {"none"}}}, "or []");
  refused({{"tensors", true}}, "tensor");
}

TEST_CASE("every limit of a preset has its source") {
  for (const std::string& name : preset_names("stacks")) {
    CAPTURE(name);
    const nlohmann::json json = nlohmann::json::parse(source_text("tools/specs/stacks/" + name + ".json"));
    REQUIRE(json.contains("can"));
    for (const auto& [key, value] : json["can"].items()) CHECK(json["sources"].contains("can." + key));
  }
}

}  // namespace plumb::test
