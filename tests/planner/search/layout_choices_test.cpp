#include "planner/search/layout_choices.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

TrainingSpec of_stack(const char* name) {
  TrainingSpec training{.global_batch = 64, .sequence = 4096};
  training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + name + ".json"), name);
  return training;
}

std::vector<std::string> names_of(const std::vector<ScheduleChoice>& choices) {
  std::vector<std::string> names;
  for (const ScheduleChoice& choice : choices)
    if (names.empty() || names.back() != choice.name) names.push_back(choice.name);
  return names;
}

}  // namespace

TEST_CASE("degrees are divisors of the devices, within what the space allows") {
  const Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:16"), of_stack("megatron-core"));
  const LayoutSpace open, pinned = parse_layout_space("tp=2|3,pp=4..,cp=..4,mbs=2..8");
  CHECK(LayoutChoices(pricing, open).tensor() == std::vector{1, 2, 4, 8, 16});
  CHECK(LayoutChoices(pricing, open).context({.tensor = 2, .pipeline = 2}) == std::vector{1, 2, 4});
  CHECK(LayoutChoices(pricing, open).data({.tensor = 2, .pipeline = 2, .context = 2}) == std::vector{2});
  const LayoutChoices choices(pricing, pinned);
  CHECK(choices.tensor() == std::vector{2, 3});  // 3 is a conflict that is said
  CHECK(choices.pipeline() == std::vector{4, 8, 16});
  CHECK(choices.context({.tensor = 1, .pipeline = 2}) == std::vector{1, 2, 4});
  CHECK(choices.microbatch({.data = 4}) == std::vector<std::int64_t>{2, 4, 8});
}

TEST_CASE("ranks that divide sequences take no more of them than one rank would, unless that is asked for") {
  const Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:16"), of_stack("megatron-core"));
  const LayoutSpace open, asked = parse_layout_space("cp=2");
  CHECK(LayoutChoices(pricing, open).microbatch({.data = 8, .context = 2}) == std::vector<std::int64_t>{1});
  CHECK(LayoutChoices(pricing, open).microbatch({.data = 8}) == std::vector<std::int64_t>{1, 2, 4, 8});
  CHECK(LayoutChoices(pricing, asked).microbatch({.data = 8, .context = 2}) == std::vector<std::int64_t>{1, 2, 4, 8});
}

TEST_CASE("sequences are divided in all ways that the framework has, and by no more ranks than halves of theirs") {
  const Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:16"), of_stack("megatron-core"));
  const LayoutSpace open;
  const LayoutChoices choices(pricing, open);
  CHECK(choices.context_kind({.context = 1}) == std::vector{ContextKind::kOfStack});
  CHECK(choices.context_kind({.context = 2}) ==
        std::vector{ContextKind::kOfStack, ContextKind::kAllGather, ContextKind::kUlysses});
  const Pricing own(preset_model("llama-3-8b"), preset_cluster("h100:16"), {.global_batch = 64, .sequence = 4096});
  CHECK(LayoutChoices(own, open).context({}) == std::vector{1});
}

TEST_CASE("experts are spread by ep, and divided by a part of the tensor group") {
  const Pricing pricing(preset_model("mixtral-8x7b"), preset_cluster("h100:32"), of_stack("nemo-moe"));
  const LayoutSpace open;
  const LayoutChoices choices(pricing, open);
  CHECK(choices.expert({.data = 4, .tensor = 2}) == std::vector{1, 2, 4, 8});
  CHECK(choices.expert_tensor({.data = 4, .tensor = 4, .expert = 4}) == std::vector{1, 2, 4});
  CHECK(choices.expert_tensor({.data = 1, .tensor = 4, .expert = 4}) == std::vector{1});
  CHECK(choices.expert_tensor({.data = 8, .tensor = 1, .expert = 4}) == std::vector{1});
}

TEST_CASE("ZeRO is over all replicas or groups of them, where the framework has groups") {
  const Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:32"), of_stack("torchtitan"));
  const LayoutSpace open;
  CHECK(LayoutChoices(pricing, open).shard({.data = 16, .tensor = 2, .zero = 3}) == std::vector{0, 2, 4, 8});
  CHECK(LayoutChoices(pricing, open).shard({.data = 16, .zero = 0}) == std::vector{0});
  const Pricing deepspeed(preset_model("llama-3-8b"), preset_cluster("h100:32"), of_stack("deepspeed"));
  CHECK(LayoutChoices(deepspeed, open).shard({.data = 32, .zero = 3}) == std::vector{0});
}

TEST_CASE("full recomputation is of any number of a stage's layers, and of all where it is named") {
  const Pricing pricing(preset_model("llama-3-8b"), preset_cluster("h100:32"), of_stack("megatron-core"));
  const Layout core{.data = 4, .pipeline = 8, .recompute = Recompute::kFull};  // four of 32 layers a stage
  const LayoutSpace open, named = parse_layout_space("recompute=full"),
                          both = parse_layout_space("recompute=full,recompute_layers=2");
  CHECK(LayoutChoices(pricing, open).recompute_layers(core) == std::vector{0, 1, 2, 3, 4, 5});
  CHECK(LayoutChoices(pricing, named).recompute_layers(core) == std::vector{0});
  CHECK(LayoutChoices(pricing, both).recompute_layers(core) == std::vector{2});
}

TEST_CASE("schedules are those of the framework, and in a wide space all that are made for costs or that Plumb runs") {
  const LayoutSpace open;
  LayoutSpace wide;
  wide.wide = true;
  const Layout family{.data = 2, .pipeline = 8};
  const Pricing titan(preset_model("llama-3-8b"), preset_cluster("h100:16"), of_stack("torchtitan"));
  CHECK(names_of(LayoutChoices(titan, open).schedule(family)) ==
        std::vector<std::string>{"1f1b", "gpipe", "interleaved", "bfs", "izb", "dualpipev"});
  CHECK(names_of(LayoutChoices(titan, wide).schedule(family)).size() == 7);  // zb-v too
  const Pricing own(preset_model("llama-3-8b"), preset_cluster("h100:16"), {.global_batch = 64, .sequence = 4096});
  CHECK(names_of(LayoutChoices(own, open).schedule(family)) ==
        std::vector<std::string>{"1f1b", "gpipe", "interleaved"});
  const std::vector<std::string> all = names_of(LayoutChoices(own, wide).schedule(family));
  for (const char* name : {"zb-h1", "zb-v", "dualpipe", "chimera", "interleaved"})
    CHECK(std::ranges::find(all, name) != all.end());
  for (const char* name : {"pipedream", "pipedream-2bw", "forward-only", "seq1f1b"})
    CHECK(std::ranges::find(all, name) == all.end());
  CHECK(names_of(LayoutChoices(own, wide).schedule({.data = 16})) == std::vector<std::string>{"1f1b"});
  const LayoutSpace named = parse_layout_space("schedule=gpipe|zb-v,v=2");
  CHECK(names_of(LayoutChoices(own, named).schedule(family)) == std::vector<std::string>{"gpipe", "zb-v"});
}

TEST_CASE("the optimizer may wait in the hosts where the framework's may, and activations besides in a wide space") {
  const LayoutSpace open;
  LayoutSpace wide;
  wide.wide = true;
  const auto names = [](const std::vector<Offload>& offloads) {
    std::vector<std::string_view> result;
    for (const Offload& offload : offloads) result.push_back(offload_name(offload));
    return result;
  };
  using Names = std::vector<std::string_view>;
  const ModelSpec model = preset_model("llama-3-8b");
  const ClusterSpec cluster = preset_cluster("h100:16");
  const Pricing own(model, cluster, {.global_batch = 64, .sequence = 4096});
  CHECK(names(LayoutChoices(own, open).offload({.data = 16})) == Names{"none", "optimizer"});
  CHECK(names(LayoutChoices(own, wide).offload({.data = 16})) == Names{"none", "optimizer", "optimizer+activations"});
  const Pricing core(model, cluster, of_stack("megatron-core"));
  CHECK(names(LayoutChoices(core, open).offload({.data = 16})) == Names{"none"});  // without ZeRO
  CHECK(names(LayoutChoices(core, wide).offload({.data = 16, .zero = 1})) == Names{"none", "optimizer"});
  CHECK(LayoutChoices(core, open).zero({.tensor = 8, .pipeline = 2}) == std::vector{0, 1});
  CHECK(names(LayoutChoices(core, open).offload({.tensor = 8, .pipeline = 2, .zero = 1})) == Names{"optimizer"});
  const Pricing titan(model, cluster, of_stack("torchtitan"));
  CHECK(names(LayoutChoices(titan, wide).offload({.data = 16, .zero = 3})) == Names{"none"});
  CHECK(LayoutChoices(titan, open).zero({.tensor = 8, .pipeline = 2}) == std::vector{0});
}

TEST_CASE("groups of micro-batches and buckets are open in a wide space") {
  const Pricing pricing(small_gpt(), round_cluster(8), {.global_batch = 32, .sequence = 256});
  const LayoutSpace open;
  LayoutSpace wide;
  wide.wide = true;
  const Layout core{.data = 2, .pipeline = 4, .chunks = 2, .schedule = "interleaved"};
  CHECK(LayoutChoices(pricing, open).group(core) == std::vector{0});
  CHECK(LayoutChoices(pricing, wide).group(core) == std::vector{0, 8, 16});
  CHECK(LayoutChoices(pricing, wide).group({.data = 2, .pipeline = 4}) == std::vector{0});
  CHECK(LayoutChoices(pricing, open).bucket_mib(core) == std::vector<std::int64_t>{0});
  CHECK(LayoutChoices(pricing, wide).bucket_mib(core) == std::vector<std::int64_t>{0, 25});
}

}  // namespace plumb::test
