#include "planner/spec/layout.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/search/layout_conflict.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("what is offloaded survives text and JSON") {
  const LayoutRequest request = parse_layout("dp=2,offload=optimizer+activations");
  CHECK(*request.offload == Offload{.optimizer = true, .activations = true});
  const Layout layout = layout_of(request);
  CHECK(layout_of(parse_layout(to_text(layout))) == layout);
  CHECK(layout_of(layout_from_json(to_json(layout), "plan.json")) == layout);
  CHECK(*parse_layout("offload=optimizer").offload == Offload{.optimizer = true});
  CHECK(*parse_layout("offload=none").offload == Offload{});
  CHECK(to_text(Layout{}).find("offload") == std::string::npos);
}

TEST_CASE("a layout's text answers what it names and leaves the rest open") {
  const LayoutRequest request =
      parse_layout("dp=2,tp=4,pp=2,v=3,zero=1,sp=1,mbs=5,recompute=full,schedule=1F1B,group=4,split=8:8:10:6");
  CHECK(request == LayoutRequest{.data = 2,
                                 .tensor = 4,
                                 .pipeline = 2,
                                 .chunks = 3,
                                 .zero = 1,
                                 .sequence_parallel = true,
                                 .microbatch = 5,
                                 .recompute = Recompute::kFull,
                                 .schedule = "1f1b",
                                 .group = 4,
                                 .split = std::vector{8, 8, 10, 6}});
  CHECK(parse_layout("") == LayoutRequest{});
  CHECK(parse_layout("cp=2,ep=4,etp=1") == LayoutRequest{.context = 2, .expert = 4, .expert_tensor = 1});
  CHECK(to_text(parse_layout("recompute=full,recompute_layers=2")) == "recompute=full,recompute_layers=2");
  CHECK(parse_split("8,8,10,6") == std::vector{8, 8, 10, 6});
  CHECK(parse_split("0,16,16,0") == std::vector{0, 16, 16, 0});  // the ends hold the embedding and the head alone
}

TEST_CASE("a layout survives its text and its JSON form") {
  const Layout layout{.data = 2,
                      .tensor = 4,
                      .pipeline = 2,
                      .context = 2,
                      .expert = 4,
                      .expert_tensor = 2,
                      .chunks = 3,
                      .zero = 2,
                      .sequence_parallel = true,
                      .microbatch = 5,
                      .recompute = Recompute::kSelective,
                      .schedule = "interleaved",
                      .group = 4,
                      .split = {1, 2, 1, 1, 2, 1}};
  CHECK(layout_of(parse_layout(to_text(layout))) == layout);
  CHECK(layout_of(layout_from_json(to_json(layout), "again")) == layout);
  CHECK(to_text(Layout{}) == "dp=1,tp=1,pp=1,v=1,zero=0,sp=0,mbs=1,recompute=none,schedule=1f1b");
}

TEST_CASE("a bad layout is refused with key and remedy") {
  const auto refused = [](const char* text, const char* place, const char* part) {
    CAPTURE(text);
    check_refused<SpecError>([&] { parse_layout(text); }, place, part);
  };
  refused("tpp=2", "tpp", "\"tp\"");
  refused("tp", "tp", "KEY=VALUE");
  refused("tp=2,tp=2", "tp", "twice");
  for (const char* key : {"dp", "tp", "pp", "cp", "ep", "etp", "v", "mbs"}) {
    for (const char* value : {"0", "-1", "x", "", "2x", "1.5"}) {
      refused((std::string(key) + "=" + value).c_str(), key, "whole number");
    }
  }
  refused("zero=4", "zero", "3");
  refused("sp=2", "sp", "1");
  refused("recompute=some", "recompute", "selective");
  refused("split=8:-1", "split", "whole number");
  refused("offload=cpu", "offload", "optimizer+activations");
  check_refused<SpecError>([] { layout_from_json({{"tpp", 2}}, "plan.json: layout"); }, "plan.json", "tp");
  check_refused<SpecError>([] { layout_from_json({{"zero", 4}}, "plan.json: layout"); }, "zero", "3");
  check_refused<SpecError>([] { layout_from_json({{"dp", 5e9}}, "plan.json: layout"); }, "dp", "at most");
  check_refused<SpecError>([] { layout_from_json({{"cp", 0}}, "plan.json: layout"); }, "cp", "1 or more");
}

TEST_CASE("a layout that cannot exist says why and what would") {
  const ModelSpec model = small_gpt();  // 8 layers, 8 heads
  const TrainingSpec training{.global_batch = 12, .sequence = 512};
  const auto conflict = [&](const char* text, int devices) {
    return layout_conflict(model, training, devices, layout_of(parse_layout(text))).value_or("none");
  };
  CHECK(conflict("dp=2,tp=2,pp=2", 8) == "none");
  CHECK(conflict("dp=2,tp=2,pp=2", 16).find("product be 16") != std::string::npos);
  CHECK(conflict("tp=3", 3).find("divide the 8 heads") != std::string::npos);
  CHECK(conflict("pp=4,v=3", 4).find("at most 8 stages") != std::string::npos);
  CHECK(conflict("pp=1,v=2", 1).find("pp=1") != std::string::npos);
  CHECK(conflict("pp=1,v=2,schedule=dualpipev", 1) == "none");  // its pairs hide exchanges on a single rank, too
  CHECK(conflict("pp=2,group=2,schedule=1f1b", 2).find("schedule=interleaved") != std::string::npos);
  CHECK(conflict("dp=5", 5).find("global batch of 12") != std::string::npos);
  CHECK(conflict("sp=1", 1).find("sp=0") != std::string::npos);
  CHECK(conflict("pp=2,split=3:4", 2).find("sum up to 8") != std::string::npos);
  CHECK(conflict("pp=2,split=8", 2).find("2 numbers") != std::string::npos);
  CHECK(conflict("pp=2,mbs=6,schedule=dualpipe", 2) == "none");
  CHECK(conflict("pp=2,mbs=12,schedule=dualpipe", 2).find("1 micro-batches: give an even pp") != std::string::npos);
  CHECK(conflict("pp=3,schedule=chimera", 3).find("pp=3 ranks") != std::string::npos);
  ModelSpec grouped = model;
  grouped.kv_heads = 2;
  CHECK(layout_conflict(grouped, training, 4, {.tensor = 4})->find("2 kv heads") != std::string::npos);
  ModelSpec odd = model;
  odd.ffn = 4097;
  CHECK(layout_conflict(odd, training, 2, {.tensor = 2})->find("feed-forward") != std::string::npos);
  CHECK(layout_conflict(model, {.global_batch = 1 << 20, .sequence = 1 << 20}, 1, {.microbatch = 1 << 20})
            ->find("smaller mbs") != std::string::npos);
  CHECK(layout_conflict(model, {.global_batch = 1 << 26, .sequence = 1}, 1, {})->find("larger mbs") !=
        std::string::npos);
  CHECK(layout_conflict(model, {.global_batch = 12, .sequence = 511}, 2, {.tensor = 2, .sequence_parallel = true})
            ->find("tokens") != std::string::npos);
}

TEST_CASE("Mamba-2 divides groups over tensor ranks, and no sequences over context ranks") {
  const ModelSpec model = preset_model("mamba-codestral-7b");
  const TrainingSpec training{.global_batch = 32, .sequence = 512};
  CHECK(!layout_conflict(model, training, 16, {.data = 2, .tensor = 8}));
  CHECK(layout_conflict(model, training, 16, {.tensor = 16}) ==
        "tp=16 does not divide the 8 groups of heads that share B and C: give a divisor of 8");
  CHECK(layout_conflict(model, training, 2, {.context = 2})->find("give cp=1") != std::string::npos);
}

TEST_CASE("a schedule at both ends needs an even pipeline, under any name; one of a file is checked when it is read") {
  const auto conflict = [](const char* text) {
    const TrainingSpec training{.global_batch = 12, .sequence = 512};
    return layout_conflict(small_gpt(), training, 3, layout_of(parse_layout(text))).value_or("none");
  };
  CHECK(conflict("pp=3,schedule=dualpipe").find("give an even pp") != std::string::npos);
  CHECK(conflict("pp=3,schedule=DualPipe").find("give an even pp") != std::string::npos);
  CHECK(conflict("pp=3,schedule=/tmp/mine.csv") == "none");
}

TEST_CASE("context and expert degrees need sizes that they divide, and experts a division of their own") {
  ModelSpec model = small_gpt();
  TrainingSpec training{.global_batch = 12, .sequence = 512};
  const auto conflict = [&](const char* text, int devices) {
    return layout_conflict(model, training, devices, layout_of(parse_layout(text))).value_or("none");
  };
  CHECK(conflict("cp=2", 2) == "none");
  training.sequence = 510;  // a ring cuts it into 4 runs
  CHECK(conflict("cp=2", 2) ==
        "cp=2 cuts a sequence into 4 runs, which do not divide its 510 tokens: give a divisor of 255");
  training.sequence = 512;
  CHECK(conflict("ep=2,dp=2", 2).find("has none") != std::string::npos);
  training.stack = StackSpec{.name = "any"};
  CHECK(conflict("cp=2", 2) == "none");
  CHECK(conflict("cp=2", 4).find("cp=2") != std::string::npos);
  CHECK(conflict("cp=3", 3).find("512 tokens") != std::string::npos);
  model.experts = 6;
  model.experts_per_token = 2;
  model.expert_ffn = 64;
  CHECK(conflict("ep=2,dp=2", 2) == "none");
  CHECK(conflict("ep=4,dp=4", 4).find("6 experts") != std::string::npos);
  CHECK(conflict("ep=3,dp=2", 2).find("2 ranks") != std::string::npos);
  training.stack.reset();
  CHECK(conflict("ep=2,dp=2", 2) == "none");
  CHECK(
      conflict("tp=2", 2) ==
      "Plumb's own executor has no two tensor ranks with the same experts: give ep a multiple of 2, or etp=2, or name "
      "a framework's stack");
  CHECK(conflict("tp=2,ep=2", 2) == "none");
  CHECK(conflict("tp=2,etp=4,dp=2", 4) ==
        "etp=4 does not divide tp=2, and in Plumb's own executor tensor ranks share experts: give a divisor of 2, or "
        "name a framework's stack");
  CHECK(conflict("tp=2,etp=2,dp=2,ep=2", 4) == "none");
  CHECK(conflict("tp=2,etp=2,ep=2", 2).find("ep=2 times etp=2 is 4") != std::string::npos);
  model.expert_ffn = 63;
  CHECK(conflict("tp=2,etp=2", 2).find("63 channels of an expert") != std::string::npos);
}

TEST_CASE("replicas count context ranks, and experts divide the ranks of a stage anew") {
  const Layout layout{.data = 4, .tensor = 2, .pipeline = 3, .context = 2, .expert = 4, .expert_tensor = 1};
  CHECK(replica_grid_of(layout) == ProcessGrid{.tensor = 2, .context = 8, .pipeline = 3});
  CHECK(expert_grid_of(layout) == ProcessGrid{.tensor = 1, .context = 4, .data = 4, .pipeline = 3});
  CHECK(world_size(expert_grid_of(layout)) == world_size(grid_of(layout)));
}

TEST_CASE("replicas that share state are neighbours, and experts share theirs among the same ranks") {
  Layout layout{.data = 8, .tensor = 2, .expert = 4, .zero = 3};
  CHECK(state_shards(layout) == 8);
  CHECK(expert_state_shards(layout) == 4);
  layout.shard = 4;
  CHECK(replica_grid_of(layout) == ProcessGrid{.tensor = 2, .context = 4, .data = 2});
  CHECK(expert_replica_grid_of(layout) == ProcessGrid{.tensor = 4, .context = 2, .data = 2});
  CHECK(to_text(layout).find("zero=3,shard=4") != std::string::npos);
  CHECK(layout_of(parse_layout(to_text(layout))) == layout);
  CHECK(layout_of(layout_from_json(to_json(layout), "layout")) == layout);
}

TEST_CASE("a group that shares state divides the replicas, and holds whole groups of experts") {
  ModelSpec model = small_gpt();
  model.experts = 8, model.experts_per_token = 2, model.expert_ffn = 64;
  TrainingSpec training{.global_batch = 8, .sequence = 512, .stack = StackSpec{.name = "any"}};
  const auto conflict = [&](std::string_view text) {
    return layout_conflict(model, training, 8, layout_of(parse_layout(text))).value_or("none");
  };
  CHECK(conflict("dp=8,zero=3,shard=4,ep=4") == "none");
  CHECK(conflict("dp=8,zero=3,shard=3") == "shard=3 does not divide the 8 replicas (dp x cp): give a divisor of 8");
  CHECK(conflict("dp=8,zero=0,shard=4").find("zero=0 divides nothing") != std::string::npos);
  CHECK(conflict("dp=8,zero=3,shard=2,ep=4").find("a multiple of 4") != std::string::npos);
  training.stack.reset();
  CHECK(conflict("dp=8,zero=3,shard=4") == "none");  // in Plumb's own executor
  CHECK(conflict("dp=8,zero=3,shard=1").find("shard=1 divides nothing") != std::string::npos);
}

}  // namespace plumb::test
