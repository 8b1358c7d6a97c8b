#include "planner/spec/stack_spec.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a stack survives its JSON form") {
  StackSpec stack{.name = "mine", .attention = AttentionKernel::kCudnn, .fused_norm = false, .tensor_hidden = 0.5};
  stack.selective = SelectiveKind::kNormsAndActivations;
  stack.fp8_saved = true;
  stack.fp8_recipes["rowwise"] = {.gemm_factor = 0.9, .cast_bytes = 10};
  stack.offloaded_share = 0.25;
  stack.sharded_masters = true;
  stack.async_tensor_gradients = true;
  stack.step_traffic = 32;
  stack.kernel_launch = Seconds{7e-6};
  stack.dispatch = ExpertDispatch::kPerRank;
  stack.graphs = GraphScope::kOutsideExperts;
  stack.stage_split = StageSplit::kEndsAsLayers;
  stack.expert_imbalance = 1.25;
  stack.fused_expert_bias = false;
  stack.can.zero = {0, 1};
  stack.sources["tensor_hidden"] = "a guess";
  CHECK(stack_from_json(to_json(stack), "again") == stack);
}

TEST_CASE("a vocabulary is padded to a multiple for each tensor rank") {
  CHECK(padded_vocab({.vocab_multiple = 128}, 50257, 1) == 50304);
  CHECK(padded_vocab({.vocab_multiple = 128}, 50257, 8) == 51200);
  CHECK(padded_vocab({.vocab_multiple = 1}, 50257, 1) == 50257);
}

TEST_CASE("a bad stack is refused with place and remedy") {
  const auto refused = [](const char* text, const char* part) {
    CAPTURE(text);
    check_refused<SpecError>([&] { parse_stack(text, "s.json"); }, "s.json", part);
  };
  refused(R"({"note": "nameless"})", "name");
  refused(R"({"name": "x", "attention": "flash9"})", "flash2");
  refused(R"({"name": "x", "selective": "some"})", "alternate-products");
  refused(R"({"name": "x", "data_hidden": 2})", "from 0 to 1");
  refused(R"({"name": "x", "offloaded_share": 1.5})", "from 0 to 1");
  refused(R"({"name": "x", "kernel_launch_us": -1})", "kernel_launch_us");
  refused(R"({"name": "x", "fused_nrom": true})", "fused_norm");
  refused(R"({"name": "x", "dispatch": "deepep"})", "per-rank");
  refused(R"({"name": "x", "graphs": "some"})", "outside-experts");
  refused(R"({"name": "x", "expert_imbalance": 0.9})", "give 1 or more");
  refused(R"({"name": "x", "dispatch_share": 0})", "above 0");
  refused(R"({"name": "x", "expert_gemm_share": 1.1})", "from 0 to 1");
}

TEST_CASE("every figure of a stack's preset that is not the default names its source") {
  const std::filesystem::path folder = std::filesystem::path(std::getenv("PLUMB_SOURCE")) / "tools/specs/stacks";
  int presets = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    CAPTURE(file.path().string());
    const StackSpec stack = parse_stack(text_of(file.path()), file.path().filename().string());
    const nlohmann::json written = nlohmann::json::parse(text_of(file.path()));
    const nlohmann::json defaults = to_json(StackSpec{});
    ++presets;
    CHECK(file.path().stem() == stack.name);
    for (const auto& [key, value] : written.items()) {
      if (key == "name" || key == "note" || key == "sources" || value == defaults.at(key)) continue;
      if (key == "can") continue;  // stack_limits_test.cpp
      CAPTURE(key);
      CHECK(stack.sources.contains(key));
    }
  }
  CHECK(presets > 0);
}

TEST_CASE("a recipe puts its figures in the place of the stack's own") {
  StackSpec stack{.name = "x", .fp8 = {.cast_bytes = 6, .gathers = true}};
  CHECK_THROWS_WITH_AS(with_fp8_recipe(stack, "rowwise"),
                       "stack x has one way to quantize, and no recipe \"rowwise\": leave it out", SpecError);
  stack.fp8_recipes = {{"rowwise", {.gemm_factor = 0.9, .cast_bytes = 10}}, {"mxfp8", {}}};
  const StackSpec rowwise = with_fp8_recipe(stack, "rowwise");
  CHECK(rowwise.fp8 == Fp8Recipe{.gemm_factor = 0.9, .cast_bytes = 10});
  CHECK(rowwise.fp8_recipe == "rowwise");
  CHECK_THROWS_WITH_AS(with_fp8_recipe(stack, "blockwise"), "stack x has no recipe \"blockwise\": give mxfp8, rowwise",
                       SpecError);
}

}  // namespace plumb::test
