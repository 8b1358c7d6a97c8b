#include "planner/score/row_mapping.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/score/row_prediction.h"
#include "planner/search/layout_conflict.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"
#include "tests/planner/score/score_fixtures.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// Returns the mapping of a row of the fixture's source, with `field` set to `value`.
MappedRow mapped_with(const std::string& field, const json& value) {
  const ScoreLibrary library = small_library();
  json row = small_row();
  set_at(row, field, value);
  return map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
}

}  // namespace

TEST_CASE("a row becomes model, cluster, training and layout") {
  const MappedRow mapped = mapped_with("id", "one");
  REQUIRE(mapped.questions.size() == 1);
  const RowQuestion& question = mapped.questions.front();
  CHECK(question.model.layers == 8);
  CHECK(question.model.mlp == MlpKind::kGelu);
  CHECK(question.model.positions == 512);
  CHECK(question.cluster.devices == 8);
  CHECK(question.cluster.devices_per_node == 4);
  CHECK(question.training.global_batch == 32);
  CHECK(question.training.precision == Precision::kBf16);
  CHECK(question.training.stack->name == "plain");
  CHECK(to_text(question.layout) == "dp=2,tp=2,pp=2,v=1,zero=1,sp=0,mbs=2,recompute=full,schedule=1f1b");
}

TEST_CASE("degrees that are not printed count as one, and dp follows from the devices") {
  const MappedRow mapped = mapped_with("dp", nullptr);
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.questions.front().layout.data == 2);
}

TEST_CASE("contradictory degrees are a reason that names them") {
  const MappedRow mapped = mapped_with("dp", 4);
  CHECK(mapped.questions.empty());
  CHECK(mapped.reason == "contradictory degrees: tp=2 x pp=2 x cp=1 x dp=4 is 16, not the 8 GPUs");
}

TEST_CASE("what a prediction cannot do without is a reason") {
  CHECK(mapped_with("mbs", nullptr).reason == "the micro-batch is not printed");
  CHECK(mapped_with("gpus", nullptr).reason == "the number of GPUs is not printed");
  CHECK(mapped_with("gbs", nullptr).reason == "the global batch is not printed");
  CHECK(mapped_with("hardware", "abacus").reason ==
        "no cluster for the hardware \"abacus\": name a preset in a mapping of your own (--mapping)");
  CHECK(mapped_with("hardware", nullptr).reason == "the row does not name its hardware");
  CHECK(mapped_with("precision", "MXFP4").reason == "precision \"MXFP4\" cannot be predicted");
  CHECK(mapped_with("precision", "NVFP4").reason == "round device has no rate in nvfp4");
  CHECK(mapped_with("precision", "fp8").reason == "round device has no rate in fp8");
  CHECK(mapped_with("recompute", "uniform, 3 layers").reason == "recomputation \"uniform, 3 layers\" is not known");
  CHECK(mapped_with("schedule", "by hand").reason == "the schedule \"by hand\" is not known");
  CHECK(mapped_with("schedule", "interleaved 1F1B").reason == "interleaved, but the chunks a rank are not printed");
  CHECK(mapped_with("model.layers", nullptr).reason.find("layers") != std::string::npos);
  CHECK(mapped_with("tp", 3).questions.empty());
}

TEST_CASE("an order to be searched and a step without a common end are read, and refused where they are nonsense") {
  const RowQuestion plain = mapped_with("id", "one").questions.front();
  CHECK_FALSE(plain.order_memory.has_value());
  CHECK_FALSE(plain.unsynchronised_step);
  CHECK(mapped_with("order_memory", 2).questions.front().order_memory == 2.0);
  CHECK(mapped_with("unsynchronised_step", true).questions.front().unsynchronised_step);
  CHECK(mapped_with("order_memory", 0.5).reason == "order_memory is no number of 1 or more");
  CHECK(mapped_with("order_memory", "all").reason == "order_memory is no number of 1 or more");
}

TEST_CASE("a batch of accumulated micro-batches is a batch") {
  json row = small_row();
  row.erase("gbs");
  row["ga"] = 8;
  const ScoreLibrary library = small_library();
  const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.questions.front().training.global_batch == 8 * 2 * 2);
}

TEST_CASE("one layer fewer at both ends may leave the first and the last chunk without any") {
  const ScoreLibrary library = small_library();
  json row = small_row();  // 8 layers, pp=2
  row["model"]["layers"] = 6;
  row["vpp"] = 4;
  row["first_last_stage"] = "one layer fewer";
  const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.questions.front().layout.split == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 0});
  const RowPrediction predicted = predict_row(mapped.questions.front(), {});
  CHECK(predicted.failure.empty());
  CHECK(predicted.step_seconds.value_or(0) > 0);
  Layout hollow = mapped.questions.front().layout;
  hollow.split = {1, 1, 0, 1, 1, 1, 1, 0};
  CHECK(layout_conflict(mapped.questions.front().model, mapped.questions.front().training, 8, hollow) ==
        "the split gives stage 2 0 layers: only the first and the last of several may hold none");
}

TEST_CASE("a micro-batch that is not printed follows from a replica's batch and its number of micro-batches") {
  const ScoreLibrary library = small_library();
  json row = small_row();
  row["mbs"] = nullptr;
  row["n_microbatches"] = 4;  // 32 sequences over two replicas
  const auto microbatch = [&] {
    return map_row(library, row, &library.mappings.front()).questions.at(0).layout.microbatch;
  };
  row = *read_by(library.mappings.front(), row).row;
  CHECK(microbatch() == 4);
  row["n_microbatches"] = 3;
  CHECK(map_row(library, row, &library.mappings.front()).reason == "the micro-batch is not printed");
}

TEST_CASE("a row's own flags change its stack, and a figure that no stack has is refused") {
  const MappedRow mapped = mapped_with("stack_with", {{"attention", "unfused"}, {"logit_bytes", 6}});
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.questions.front().training.stack->attention == AttentionKernel::kUnfused);
  CHECK(mapped.questions.front().training.stack->logit_bytes == 6);
  CHECK(mapped_with("stack_with", {{"logit_byte", 6}}).reason.find("logit_bytes") != std::string::npos);

  ScoreLibrary library = small_library();
  library.mappings.front().rules.front().fill.emplace_back("stack_with.logit_byte", 6);
  const json row = *read_by(library.mappings.front(), small_row()).row;
  check_refused<SpecError>([&] { map_row(library, row, &library.mappings.front()); }, "logit_bytes", "stack");
}

TEST_CASE("chunks make 1F1B interleaved, and one layer fewer at both ends is a split") {
  const MappedRow chunks = mapped_with("vpp", 2);
  REQUIRE(chunks.questions.size() == 1);
  CHECK(chunks.questions.front().layout.schedule == "interleaved");
  const MappedRow ends = mapped_with("first_last_stage", "one layer fewer than the others");
  REQUIRE(ends.questions.size() == 1);
  CHECK(ends.questions.front().layout.split == std::vector<int>{4, 4});
}

TEST_CASE("fields that are not printed can be left open, and chunks of unlike lengths are not tried") {
  json row = small_row();
  row.erase("mbs");
  row["search"] = {{"mbs", {1, 2, 16}}, {"vpp", {1, 2, 3}}};
  const ScoreLibrary library = small_library();
  const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  CHECK(mapped.questions.size() == 6);  // three micro-batches, one or two chunks of 8 layers on 2 ranks
  CHECK(mapped.assumptions.back().find("the fastest predicted is meant") != std::string::npos);
  row["search"] = {{"mbs", {1, 2, 16}}, {"vpp", "1..48"}};
  const MappedRow by_range = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  CHECK(by_range.questions.size() == 9);  // one, two or four chunks
  for (const json& wrong : {json("48..1"), json("many"), json(4), json::array()}) {
    row["search"] = {{"vpp", wrong}};
    const MappedRow refused = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
    CHECK(refused.questions.empty());
    CHECK(refused.reason == "search: vpp: give a list, or a range as in \"1..48\"");
  }
}

TEST_CASE("sizes come from the row, from the given sizes by name, or from a model preset") {
  ScoreLibrary library = small_library();
  json row = small_row();
  row["model"] = {{"name", "Tiny Model 1"}, {"seq", 512}, {"dims_key", "tiny"}};
  const auto map = [&] {
    return map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  };
  CHECK(map().questions.empty());
  library.dims = std::make_shared<const json>(json{{"tiny", small_row()["model"]}});
  CHECK(map().questions.size() == 1);
  library.dims = std::make_shared<const json>(json::object());
  library.models["tiny-model-1"] = to_json(small_gpt());
  REQUIRE(map().questions.size() == 1);
  CHECK(map().questions.front().model.hidden == 1024);
}

TEST_CASE("overrides replace figures of every cluster and stack, and a figure that none has is refused") {
  ScoreLibrary library = small_library();
  library.overrides = {{"cluster.device.gemm_efficiency", 0.5}, {"stack.kernel_launch_us", 7}};
  const json row = *read_by(library.mappings.front(), small_row()).row;
  const MappedRow mapped = map_row(library, row, &library.mappings.front());
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.questions.front().cluster.device.gemm_efficiency == 0.5);
  CHECK(mapped.questions.front().training.stack->kernel_launch.count() == doctest::Approx(7e-6));
  library.overrides = {{"cluster.device.gem_efficiency", 0.5}};
  check_refused<SpecError>([&] { map_row(library, row, &library.mappings.front()); }, "cluster round",
                           "gem_efficiency");
}

TEST_CASE("a row whose source has no mapping is read by itself, and what is guessed is said") {
  ScoreLibrary library = small_library();
  library.clusters["h100"] = library.clusters["round"];
  json row = small_row();
  row["hardware"] = "8 x H100 SXM";
  row["model"]["vocab"] = 8192;
  row.erase("precision");
  CHECK(map_row(library, row, nullptr).reason.find("there is no stack \"megatron-core\"") == 0);
  row["stack"] = "plain";
  const MappedRow mapped = map_row(library, row, nullptr);
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.assumptions == std::vector<std::string>{"the cluster is the preset h100", "the precision is bf16"});
}

TEST_CASE("other work than pre-training, and methods that are not described, are refused") {
  CHECK(mapped_with("kind", "LoRA Performance").reason == "\"LoRA Performance\" is no pre-training");
  CHECK(mapped_with("task", "GRPO rollout and training").reason == "\"GRPO rollout and training\" is no pre-training");
  CHECK(mapped_with("kind", "inference, 8 requests").reason == "\"inference, 8 requests\" is no pre-training");
  CHECK(mapped_with("kind", "Pre-Training Performance").questions.size() == 1);
  CHECK(mapped_with("method", "layers redistributed").reason == "the method \"layers redistributed\" is not described");
  CHECK(mapped_with("method", "1F1B baseline").questions.size() == 1);
}

TEST_CASE("a row of several devices without any degree of parallelism says too little") {
  const ScoreLibrary library = small_library();
  json row = small_row();
  for (const char* degree : {"tp", "pp", "cp", "dp", "ep", "zero"}) row.erase(degree);
  CHECK(map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front()).reason ==
        "no degree of parallelism is printed");
}

TEST_CASE("a precision that is not printed is bf16, unless the device has fp8 as well") {
  ScoreLibrary library = small_library();
  json row = small_row();
  row.erase("precision");
  const auto mapped = [&] {
    return map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  };
  CHECK(mapped().questions.front().training.precision == Precision::kBf16);
  library.overrides.emplace_back("cluster.device.peak_tflops.fp8", 200);
  CHECK(mapped().reason == "the precision is not printed, and the device has fp8");
}

TEST_CASE("a row that names no framework gets the one that is assumed, and what is open is searched") {
  ScoreLibrary library = small_library();
  library.stacks["megatron-core"] = library.stacks.at("plain");
  library.stacks["megatron-core"]["name"] = "megatron-core";
  SourceMapping typed = library.mappings.front();
  typed.cites.clear();
  typed.rules.clear();
  library.mappings = {typed};
  library.open_fields = std::make_shared<const json>(json{{"zero", {0, 1, 2}}, {"mbs", {1, 2}}});
  json row = small_row();
  row.erase("zero");
  row["model"]["vocab"] = 8192;
  const MappedRow mapped = map_row(library, row, &library.mappings.front());
  REQUIRE(mapped.questions.size() == 3);  // the micro-batch is printed
  CHECK(mapped.questions.front().training.stack->name == "megatron-core");
  CHECK(mapped.questions.front().framework == FrameworkKnown::kAssumed);
  row["dist_optimizer"] = true;  // says ZeRO 1
  CHECK(map_row(library, row, &library.mappings.front()).questions.size() == 1);
}

TEST_CASE("expert parallelism that is not printed is open where there are experts") {
  ScoreLibrary library = small_library();
  library.open_fields = std::make_shared<const json>(json{{"ep", {1, 2, 3}}});
  const auto questions = [&](const json& experts) {
    json row = *read_by(library.mappings.front(), small_row()).row;
    row["model"]["experts"] = experts;
    row["model"]["experts_per_token"] = experts;
    if (!experts.is_null()) row["model"]["expert_ffn"] = 1024;
    const MappedRow mapped = map_row(library, row, &library.mappings.front());
    CHECK(mapped.reason == "");
    return mapped.questions;
  };
  CHECK(questions(nullptr).size() == 1);
  REQUIRE(questions(8).size() == 2);  // two replicas are no group of three
  CHECK(questions(8).back().layout.expert == 2);
}

TEST_CASE("counts that no run can have are the row's fault") {
  const ScoreLibrary library = small_library();
  const auto reason = [&](const char* field, const json& value) {
    json row = *read_by(library.mappings.front(), small_row()).row;
    row[field] = value;
    return map_row(library, row, &library.mappings.front()).reason;
  };
  CHECK(reason("mbs", 0) == "mbs is 0, which no run can have");
  CHECK(reason("tp", -2) == "tp is -2, which no run can have");
  CHECK(reason("pp", 3000000000) == "pp is 3000000000, which no run can have");
  CHECK(reason("gpus_per_node", 0) == "gpus_per_node is 0, which no run can have");
  CHECK(reason("gbs", -1) == "gbs is -1, which no run can have");
  CHECK(reason("gpus", 1).find("contradictory degrees") == 0);
  json row = *read_by(library.mappings.front(), small_row()).row;
  row["model"]["hidden"] = json::array();
  row["model"].erase("ffn");
  CHECK(map_row(library, row, &library.mappings.front()).reason.find("hidden") != std::string::npos);
}

TEST_CASE("the general mapping says what it takes a row to be, and takes the network that is printed") {
  ScoreLibrary library = small_library();
  library.mappings.push_back(parse_source_mapping(
      R"({"name": "general", "cites": [],
          "clusters": [{"hardware": "round", "cluster": "round", "network_as_printed": true}],
          "rules": [{"fill": {"stack": "plain", "model.vocab": 8192}}]})",
      "general.json"));
  json row = small_row();
  row["source"] = {{"paper", "a new one"}};
  row["hardware"] = "round machine, 2x100Gb IB";
  const SourceMapping* mapping = mapping_for(library.mappings, row);
  REQUIRE(mapping != nullptr);
  const MappedRow mapped = map_row(library, *read_by(*mapping, row).row, mapping);
  REQUIRE(mapped.questions.size() == 1);
  REQUIRE(mapped.questions.front().cluster.network);
  CHECK(mapped.questions.front().cluster.network->bytes_per_second == doctest::Approx(12.5e9));
  CHECK(nic_count(mapped.questions.front().cluster) == 2);
  REQUIRE(mapped.assumptions.size() == 1);
  CHECK(mapped.assumptions.front().find("the framework is plain and the cluster") != std::string::npos);
}

TEST_CASE("of the devices of a printed node as many have a NIC as in the preset") {
  ScoreLibrary library = small_library();
  set_at(library.clusters["round"], "network.nics_per_node", json{{"value", 2}, {"source", "half as many as devices"}});
  const auto nics = [&](const json& per_node) {
    json row = small_row();
    row["gpus_per_node"] = per_node;
    const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
    REQUIRE_MESSAGE(mapped.questions.size() == 1, mapped.reason);
    return nic_count(mapped.questions.front().cluster);
  };
  CHECK(nics(nullptr) == 2);
  CHECK(nics(8) == 4);
  CHECK(nics(1) == 1);
}

TEST_CASE("hardware that a mapping does not name is read by the general one") {
  ScoreLibrary library = small_library();
  library.mappings.push_back(parse_source_mapping(
      R"({"name": "general", "cites": [], "clusters": [{"hardware": "abacus", "cluster": "round"}]})", "general.json"));
  json row = small_row();
  row["hardware"] = "abacus";
  const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
  REQUIRE(mapped.questions.size() == 1);
  CHECK(mapped.assumptions.front() == "the mapping names no cluster for \"abacus\": by the general rules round");
}

TEST_CASE("a domain of many hosts is not cut by what is printed of a host, and is filled alike") {
  ScoreLibrary library = small_library();
  set_at(library.clusters["round"], "node.devices", 72);
  const auto per_node = [&](int devices) {
    json row = small_row();
    row["gpus"] = devices;
    row["gpus_per_node"] = 4;
    row["dp"] = devices / 4;
    row["gbs"] = 2 * devices;
    const MappedRow mapped = map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front());
    REQUIRE_MESSAGE(mapped.questions.size() == 1, mapped.reason);
    return mapped.questions.front().cluster.devices_per_node;
  };
  CHECK(per_node(256) == 64);
  CHECK(per_node(144) == 72);
}

TEST_CASE("memory that the hardware's text names is the device's, where it is another than the preset's") {
  const auto bytes = [](const char* hardware) {
    return mapped_with("hardware", hardware).questions.front().cluster.device.memory_bytes;
  };
  CHECK(bytes("round machine 7 GB") == 7'000'000'000);
  CHECK(bytes("round machine, 400 GB/s") == bytes("round machine"));
}

TEST_CASE("what a row itself says of stack, optimizer and chunks is the row's fault") {
  CHECK(mapped_with("stack", "plane").reason == "there is no stack \"plane\": plumb stacks lists those there are");
  CHECK(mapped_with("stack_with", json::array({1})).reason == "stack_with is no object: write {\"FIGURE\": VALUE}");
  CHECK(mapped_with("optimizer", "adams").reason.find("adamw") != std::string::npos);
  CHECK(mapped_with("gradient_precision", "NaN").reason.find("no precision") != std::string::npos);

  json row = small_row();
  row["vpp"] = nullptr;
  row["schedule"] = "interleaved 1F1B";
  row["search"] = {{"vpp", {3, 5}}};
  const ScoreLibrary library = small_library();
  CHECK(map_row(library, *read_by(library.mappings.front(), row).row, &library.mappings.front()).reason ==
        "no chunks that the row leaves open divide the layers alike");
}

}  // namespace plumb::test
