#include "planner/search/resource_sensitivity.h"

#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const NetworkOptions kPrivateLinks{.share_links = false};

Plan llama_plan(Layout layout, const char* cluster) {
  return {.model = preset_model("llama-3-8b"),
          .cluster = preset_cluster(cluster),
          .training = {.global_batch = 16, .sequence = 4096},
          .layout = std::move(layout)};
}

std::map<std::string, double> elasticities(const Plan& plan) {
  const Evaluation evaluation = evaluate(plan, {}, kPrivateLinks);
  REQUIRE(evaluation.exists);
  std::map<std::string, double> by_figure;
  for (const ResourceSensitivity& by : resource_sensitivity(plan, evaluation)) by_figure[by.figure] = by.elasticity;
  return by_figure;
}

/// d ln(step) / d ln(figure) from two more simulations.
double finite_difference(const Plan& plan, const std::string& figure, const NetworkOptions& network = kPrivateLinks) {
  constexpr double kStep = 1e-2;
  const auto step_with = [&](double factor) {
    nlohmann::json json = to_json(plan, "");
    std::string pointer = "/cluster/" + figure;
    for (char& c : pointer) c = c == '.' ? '/' : c;
    auto& at = json[nlohmann::json::json_pointer(pointer)];
    const auto scale = [factor](nlohmann::json& value) {
      auto& number = value.is_object() ? value["value"] : value;
      number = number.get<double>() * factor;
    };
    if (figure == "device.peak_tflops") {
      for (auto& [precision, flops] : at.items()) scale(flops);
    } else {
      scale(at);
    }
    const Evaluation evaluation = evaluate(plan_from_json(json, "plan"), {.record_timeline = false}, network);
    return step_time(evaluation.simulation).count();
  };
  return (step_with(1 + kStep) - step_with(1 - kStep)) / step_with(1) / (2 * kStep);
}

}  // namespace

TEST_SUITE("property") {
  TEST_CASE("elasticities of the step are those of finite differences, figure by figure") {
    int compared = 0;
    for (Plan plan :
         {llama_plan({.tensor = 4, .pipeline = 2, .split = {15, 17}}, "h100:8"),
          llama_plan({.data = 2, .tensor = 4, .pipeline = 2, .zero = 1, .split = {15, 17}}, "h100:16"),
          llama_plan({.data = 4, .pipeline = 2, .split = {15, 17}}, "h100:8"),
          llama_plan({.data = 2, .tensor = 2, .pipeline = 4, .sequence_parallel = true, .split = {7, 8, 8, 9}},
                     "a100:16")}) {
      CAPTURE(to_text(plan.layout));
      for (const auto& [figure, elasticity] : elasticities(plan)) {
        CAPTURE(figure);
        // With so wide a step another path may be the longest.
        CHECK(elasticity == doctest::Approx(finite_difference(plan, figure)).epsilon(1e-2).scale(1e-2));
        ++compared;
      }
    }
    CHECK(compared >= 20);
  }

  TEST_CASE("so are those of a step whose transfers share links") {
    int compared = 0;
    Plan offloading = llama_plan({.data = 2, .tensor = 2, .pipeline = 4, .split = {7, 8, 8, 9}}, "h100:16");
    offloading.layout.offload.activations = true;
    offloading.cluster.host->memory_bytes_per_second /= 5;
    for (const Plan& plan :
         {llama_plan({.data = 2, .tensor = 4, .pipeline = 2, .zero = 1, .split = {15, 17}}, "h100:16"),
          llama_plan({.data = 2, .tensor = 2, .pipeline = 4, .zero = 0, .split = {7, 8, 8, 9}}, "h100:16"),
          offloading}) {
      CAPTURE(to_text(plan.layout));
      const Evaluation evaluation = evaluate(plan);
      REQUIRE(evaluation.network);
      const NetworkGradient gradient = *network_gradient(evaluation.lowered, evaluation.costs, *evaluation.network);
      CHECK(gradient.makespan == evaluation.simulation.makespan);
      for (const ResourceSensitivity& by : resource_sensitivity(plan, evaluation, gradient, {})) {
        CAPTURE(by.figure);
        CHECK(by.elasticity == doctest::Approx(finite_difference(plan, by.figure, {})).epsilon(1e-2).scale(1e-2));
        ++compared;
      }
    }
    CHECK(compared >= 20);
  }

  TEST_CASE("faster hardware shortens the step, slower latency lengthens it, and all figures together explain it") {
    // Rings on 4 devices a node: tensor groups of 2 inside nodes, data groups across them, stages beside each other.
    Plan plan = llama_plan({.data = 2, .tensor = 2, .pipeline = 4, .zero = 1, .split = {7, 8, 8, 9}}, "h100:16");
    plan.cluster = round_cluster(16);
    plan.cluster.device.kernel_fixed = Seconds{5e-6};
    const auto by = elasticities(plan);
    CHECK(by.at("device.peak_tflops") < -0.1);
    CHECK(by.at("device.memory_bandwidth_gb_per_s") < 0);
    CHECK(by.at("device.kernel_fixed_us") > 0);
    CHECK(by.at("node.bandwidth_gb_per_s") < 0);
    CHECK(by.at("network.bandwidth_gb_per_s") < 0);
    CHECK(by.at("node.latency_us") > 0);
    CHECK(by.at("network.latency_us") > 0);
    // Twice of every rate and half of every latency is half the time: the elasticities of a homogeneous function.
    double rates = 0;
    for (const auto& [figure, elasticity] : by) rates += figure.ends_with("_us") ? -elasticity : elasticity;
    CHECK(rates == doctest::Approx(-1).epsilon(1e-4));
  }
}

TEST_SUITE("unit") {
  TEST_CASE("where the product is bounded by FLOPs alone the peak's elasticity is -1") {
    // One device, all efficiencies 1, no fixed times; memory a million times faster than needed.
    ClusterSpec cluster = round_cluster(1);
    cluster.device.memory_bytes_per_second *= 1e6;
    const Plan plan{.model = small_gpt(), .cluster = cluster, .training = {.global_batch = 4, .sequence = 512}};
    const auto by = elasticities(plan);
    CHECK(by.at("device.peak_tflops") == doctest::Approx(-1).epsilon(1e-4));
    CHECK(by.at("device.memory_bandwidth_gb_per_s") == doctest::Approx(0).scale(1).epsilon(1e-4));
  }

  TEST_CASE("no elasticities are told where transfers share links or without a timeline") {
    const Plan plan = llama_plan({.data = 2, .tensor = 4, .pipeline = 2}, "h100:16");
    CHECK(resource_sensitivity(plan, evaluate(plan, {.record_timeline = false}, kPrivateLinks)).empty());
    const Evaluation shared = evaluate(plan);
    CHECK(resource_sensitivity(plan, shared).empty() == (shared.simulation.engine == "events"));
  }
}

}  // namespace plumb::test
