#include "planner/search/plan.h"
#include "planner/search/evaluate_plan.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

Plan evaluated_plan() {
  Plan plan{.model = small_gpt(),
            .cluster = preset_cluster("h100:8"),
            .training = {.global_batch = 16, .sequence = 512},
            .layout = {.data = 2, .tensor = 2, .pipeline = 2, .zero = 1, .schedule = "1f1b"}};
  plan.prediction = prediction_of(evaluate(plan));
  return plan;
}

}  // namespace

TEST_CASE("a plan survives its file, part by part") {
  const Plan plan = evaluated_plan();
  const auto json = to_json(plan, "0.1.0");
  const Plan again = parse_plan(json.dump(2), "plan.json");
  CHECK(to_json(again, "0.1.0").dump() == json.dump());
  CHECK(again.model == plan.model);
  CHECK(again.training == plan.training);
  CHECK(again.layout == plan.layout);
  CHECK(again.prediction == plan.prediction);
  // Each part has the form in which it can be given alone.
  CHECK(parse_model(json["model"].dump(), "m") == plan.model);
  CHECK(parse_training(json["training"].dump(), "t") == plan.training);
  CHECK(to_json(parse_cluster(json["cluster"].dump(), "c")).dump() == json["cluster"].dump());
}

TEST_CASE("what a plan file predicts is what evaluating it gives") {
  const Plan again = parse_plan(to_json(evaluated_plan(), "0.1.0").dump(), "plan.json");
  CHECK(prediction_of(evaluate(again)) == again.prediction);
}

TEST_CASE("a prediction names every key, unknown ones as null") {
  const auto json = to_json(*evaluated_plan().prediction);
  for (const char* key : {"step_time_s", "makespan_s", "bubble_ratio", "span_bubble_ratio", "tokens_per_s", "mfu",
                          "peak_memory_bytes", "peak_activations", "critical_path", "ranks"}) {
    CHECK(json.contains(key));
  }
  CHECK(json["critical_path"].is_null());
  Plan unpredicted = evaluated_plan();
  unpredicted.prediction.reset();
  CHECK(to_json(unpredicted, "")["prediction"].is_null());
  CHECK(!parse_plan(to_json(unpredicted, "").dump(), "p").prediction);
}

TEST_CASE("a schedule of the user's own travels with the plan") {
  Plan plan = evaluated_plan();
  plan.order = make_schedule("gpipe", {.ranks = 2, .microbatches = 8});
  plan.order->name = "mine";
  const Plan again = parse_plan(to_json(plan, "").dump(), "plan.json");
  REQUIRE(again.order);
  CHECK(*again.order == *plan.order);
  CHECK(evaluate(again).simulation.peak_activations == std::vector{8, 8});
  plan.order = make_schedule("gpipe", {.ranks = 2, .microbatches = 4});
  check_refused<SpecError>([&] { evaluate(plan); }, "gpipe", "8");
}

TEST_CASE("a plan that cannot exist or does not fit is a value") {
  Plan plan = evaluated_plan();
  plan.layout.data = 4;
  CHECK(!evaluate(plan).exists);
  CHECK(evaluate(plan).infeasible.find("product be 8") != std::string::npos);
  plan = evaluated_plan();
  plan.cluster.device.memory_bytes = plan.cluster.device.reserved_bytes + (std::int64_t{200} << 20);
  const Evaluation evaluation = evaluate(plan);
  CHECK(evaluation.exists);
  CHECK(evaluation.infeasible.find("lacks") != std::string::npos);
  CHECK(evaluate(evaluated_plan()).infeasible.empty());
}

TEST_CASE("a bad plan file is refused with place and remedy") {
  using nlohmann::json;
  const json good = to_json(evaluated_plan(), "0.1.0");
  const auto refused = [&](const char* pointer, json value, const char* part) {
    json bad = good;
    const json::json_pointer at(pointer);
    if (value.is_discarded())
      bad.at(at.parent_pointer()).erase(at.back());
    else
      bad[at] = std::move(value);
    CAPTURE(pointer);
    check_refused<SpecError>([&] { parse_plan(bad.dump(), "plan.json"); }, "plan.json", part);
  };
  const json gone(json::value_t::discarded);
  for (const char* part : {"model", "cluster", "training", "layout"}) {
    refused((std::string("/") + part).c_str(), gone, part);
    refused((std::string("/") + part).c_str(), 3, part);
  }
  refused("/lay_out", 1, "layout");
  refused("/model/hidden", 0, "model.hidden");
  refused("/training/seq", "x", "training.seq");
  refused("/cluster/device/memory_gib", -1, "cluster.device.memory_gib");
  refused("/layout/tp", 0, "layout.tp");
  refused("/schedule/actions", 5, "schedule.actions");
  refused("/prediction/step_time_s", gone, "step_time_s");
  refused("/prediction/step_time", 1, "step_time_s");
  const std::string text = good.dump();
  for (const std::size_t length : {std::size_t{0}, text.size() / 3, text.size() - 1}) {
    check_refused<SpecError>([&] { parse_plan(text.substr(0, length), "plan.json"); }, "plan.json", "line 1");
  }
}

}  // namespace plumb::test
