// Each of the planner's files is read with its format number, without it, and with a newer one
// (schedules/forms/file_format.h).

#include "schedules/forms/file_format.h"

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/search/plan.h"
#include "planner/spec/stack_spec.h"
#include "planner/spec/topology_spec.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

struct PlannerFile {
  FileForm kind;
  nlohmann::ordered_json document;
  std::function<void(const std::string&)> read;
};

std::vector<PlannerFile> planner_files() {
  const Plan plan{.model = small_gpt(),
                  .cluster = round_cluster(2),
                  .training = {.global_batch = 8, .sequence = 128},
                  .layout = {.pipeline = 2}};
  return {{FileForm::kPlan, to_json(plan, "0.1.0"), [](const std::string& text) { parse_plan(text, "f.json"); }},
          {FileForm::kCluster, to_json(plan.cluster), [](const std::string& text) { parse_cluster(text, "f.json"); }},
          {FileForm::kModel, to_json(plan.model), [](const std::string& text) { parse_model(text, "f.json"); }},
          {FileForm::kModel, to_json(preset_model("alexnet")),  // a layer graph
           [](const std::string& text) { parse_model(text, "f.json"); }},
          {FileForm::kStack, to_json(StackSpec{.name = "mine"}),
           [](const std::string& text) { parse_stack(text, "f.json"); }},
          {FileForm::kTopology, nlohmann::ordered_json::parse(R"({"nodes": ["a", "b"], "devices": ["a", "b"],
             "links": [{"from": "a", "to": "b", "bandwidth_gb_per_s": 50}]})"),
           [](const std::string& text) { parse_topology(text, "f.json"); }}};
}

}  // namespace

TEST_CASE("the planner's files are read with their format number and without, and refused with a newer one") {
  for (const PlannerFile& file : planner_files()) {
    CAPTURE(file.document.dump());
    CHECK_NOTHROW(file.read(file.document.dump()));
    nlohmann::ordered_json numbered = with_format(file.kind, file.document);
    CHECK_NOTHROW(file.read(numbered.dump()));
    numbered["plumb_format"] = newest_format(file.kind) + 1;
    check_refused<SpecError>([&] { file.read(numbered.dump()); }, "f.json: format ", "update Plumb, or ");
    numbered["plumb_format"] = 0;
    check_refused<SpecError>([&] { file.read(numbered.dump()); }, "f.json: format 0 ", "whole number of 1 or more");
  }
}

TEST_CASE("a part of a plan carries no number of its own") {
  for (const char* part : {"model", "cluster", "training", "layout"}) {
    nlohmann::ordered_json plan = planner_files().front().document;
    plan[part]["plumb_format"] = 1;
    check_refused<SpecError>([&] { parse_plan(plan.dump(), "plan.json"); },
                             std::string("plan.json: ") + part + ".plumb_format", "unknown");
  }
}

}  // namespace plumb::test
