#include "planner/spec/assumed_stack.h"

#include <doctest/doctest.h>

#include "planner/price/pricing.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

std::string assumed_of(const std::string& model, const std::string& cluster, const std::string& layout) {
  const auto assumed = assumed_stack(preset_model(model), preset_cluster(cluster), layout_of(parse_layout(layout)));
  return assumed ? std::string(assumed->name) : "none";
}

StackLibrary preset_stacks() {
  StackLibrary stacks;
  for (const std::string& name : preset_names("stacks"))
    stacks.emplace(name, parse_stack(source_text("tools/specs/stacks/" + name + ".json"), name));
  return stacks;
}

}  // namespace

TEST_CASE("the assumed framework depends on the layout, the model and the device's generation") {
  CHECK(assumed_of("llama-3-8b", "h100:8", "tp=8") == "nemo");
  CHECK(assumed_of("llama-3-8b", "h100:8", "dp=8,zero=3") == "torchtitan");
  CHECK(assumed_of("llama-3-8b", "h100:8", "dp=4,tp=2,zero=3") == "torchtitan");
  CHECK(assumed_of("llama-3-8b", "h100:8", "dp=4,pp=2,zero=3") == "nemo");
  CHECK(assumed_of("llama-3-8b", "a100:8", "tp=8") == "megatron-core");
  CHECK(assumed_of("llama-3-8b", "a100:8", "dp=8,zero=3") == "torchtitan");
  CHECK(assumed_of("llama-3-8b", "v100:8", "dp=8,zero=3") == "megatron-lm-2021");
  CHECK(assumed_of("mixtral-8x7b", "b200:8", "dp=8,zero=3") == "nemo-moe");
  CHECK(assumed_of("mixtral-8x7b", "a100:8", "dp=8,ep=8") == "megatron-core");
}

TEST_CASE("layer graphs, measured clusters and devices without 16 bit keep Plumb's own executor") {
  CHECK(assumed_of("alexnet", "h100:8", "dp=8") == "none");
  ClusterSpec measured = preset_cluster("h100:8");
  measured.samples.push_back({.kernel = "gemm", .shape = {1, 1, 1, 1, 0}});
  CHECK_FALSE(assumed_stack(preset_model("llama-3-8b"), measured, {}));
  ClusterSpec single = preset_cluster("h100:8");
  single.device.peak_flops_per_second = {{Precision::kFp32, 1e12}};
  CHECK_FALSE(assumed_stack(preset_model("llama-3-8b"), single, {}));
}

TEST_CASE("every framework that may be assumed is a preset") {
  const StackLibrary stacks = preset_stacks();
  for (const std::string& cluster : preset_names("clusters")) {
    for (const char* model : {"llama-3-8b", "mixtral-8x7b"}) {
      for (const int zero : {0, 3}) {
        const auto assumed = assumed_stack(preset_model(model), preset_cluster(cluster), {.zero = zero});
        REQUIRE(assumed);
        CHECK(stacks.contains(assumed->name));
      }
    }
  }
}

TEST_CASE("each layout of a search is priced for the framework that is assumed of it, and its plan says so") {
  const ModelSpec model = preset_model("llama-3-8b");
  const ClusterSpec cluster = preset_cluster("h100:8");
  const TrainingSpec training{.global_batch = 32, .sequence = 8192};
  const StackLibrary stacks = preset_stacks();
  Pricing assuming(model, cluster, training, stacks);
  int differing = 0;
  for (const char* request : {"dp=8,zero=3,mbs=1", "dp=4,tp=2,zero=1,sp=1,mbs=1"}) {
    const SearchResult found = search_layouts(assuming, parse_layout(request), {.keep = 1});
    REQUIRE(found.ranked.size() == 1);
    const Evaluation& best = found.ranked.front();
    const Plan plan = plan_of(assuming, best, std::nullopt);
    REQUIRE(plan.training.stack);
    CHECK(plan.training.stack->name == assumed_stack(model, cluster, best.layout)->name);
    CHECK(plan.training.stack_assumed == assumed_stack(model, cluster, best.layout)->because);
    TrainingSpec named = training;
    named.stack = stacks.at(plan.training.stack->name);
    Pricing naming(model, cluster, named);
    const SearchResult same = search_layouts(naming, parse_layout(request), {.keep = 1});
    REQUIRE(same.ranked.size() == 1);
    CHECK(same.ranked.front().simulation.makespan == best.simulation.makespan);
    differing += plan.training.stack->name == "nemo" ? 1 : 0;
  }
  CHECK(differing == 1);
}

TEST_CASE("a model that Plumb's own executor does not run can be planned for the assumed framework") {
  Pricing assuming(preset_model("deepseek-v3"), preset_cluster("h100:256"), {.global_batch = 512, .sequence = 4096},
                   preset_stacks());
  const SearchResult found = search_layouts(assuming, parse_layout("pp=8,ep=32,tp=1,v=1,mbs=1,zero=1"), {.keep = 1});
  REQUIRE_FALSE(found.ranked.empty());
  CHECK(assuming.stack_of(found.ranked.front().layout)->name == "nemo-moe");
}

}  // namespace plumb::test
