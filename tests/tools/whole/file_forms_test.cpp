// The JSON Schemas in docs/schemas are what Plumb's own readers ask of every preset and of every file that Plumb writes.
// PLUMB_RENEW=1 writes them anew.

#include <cstdlib>
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/budget/reliability_spec.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/stack_spec.h"
#include "planner/spec/topology_spec.h"
#include "schedules/forms/form_record.h"
#include "schedules/forms/json_form.h"
#include "schedules/forms/strict_json.h"
#include "schedules/generators/catalogue.h"
#include "schedules/search/certificate.h"
#include "schedules/search/search_schedule.h"
#include "tests/schedules/order_questions.h"
#include "tools/inputs/costs_file.h"
#include "tools/inputs/presets.h"
#include "tools/io/files.h"

namespace plumb::test {
namespace {

using Json = nlohmann::ordered_json;

void each_preset(Preset::Kind kind, const std::function<void(const std::string& text, const std::string& file)>& read) {
  for (const Preset& preset : presets()) {
    if (preset.kind == kind) read(std::string(preset.text), std::string(preset.name) + ".json");
  }
}

/// Reads the presets of models that have a graph, or of those that have sizes, as they stand and as Plumb prints them.
void read_models(bool graphs) {
  each_preset(Preset::Kind::kModel, [&](const std::string& text, const std::string& file) {
    if (Json::parse(text).contains("nodes") == graphs) {
      Json printed = to_json(parse_model(text, file));
      printed.update(shown_figures(parse_model(text, file)));
      parse_model(printed.dump(), file);
    }
  });
}

std::string preset_text(Preset::Kind kind, std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.kind == kind && preset.name == name) return std::string(preset.text);
  }
  FAIL("there is no preset " << name);
  return {};
}

ClusterSpec preset_cluster(const std::string& name, int devices) {
  return resize(parse_cluster(preset_text(Preset::Kind::kCluster, name), name), devices);
}

constexpr LinkSpec kBetweenSites{.bytes_per_second = 10e9};

/// Reads each preset alone, and as the second site behind whole nodes of any size.
void read_clusters() {
  constexpr int kWholeNodes = 8 * 72;
  each_preset(Preset::Kind::kCluster, [](const std::string& text, const std::string& file) {
    const ClusterSpec cluster = parse_cluster(text, file);
    parse_cluster(to_json(cluster).dump(), file);
    parse_cluster(to_json(joined_sites({preset_cluster("h100", kWholeNodes), cluster}, kBetweenSites)).dump(), file);
  });
}

void read_stacks() {
  each_preset(Preset::Kind::kStack, [](const std::string& text, const std::string& file) {
    parse_stack(to_json(parse_stack(text, file)).dump(), file);
  });
}

void read_plans() {
  const auto model_of = [](const char* name) { return parse_model(preset_text(Preset::Kind::kModel, name), name); };
  Plan plan{.model = model_of("gpt2"),
            .cluster = preset_cluster("h100", 8),
            .training = {.global_batch = 16, .sequence = 512, .optimizer = Optimizer::kAdamW},
            .layout = {.data = 2, .tensor = 2, .pipeline = 2, .zero = 1, .schedule = "1f1b"}};
  plan.prediction = prediction_of(evaluate(plan));
  parse_plan(to_json(plan, "0").dump(), "plan.json");
  plan.cluster = joined_sites({preset_cluster("h100", 4), preset_cluster("a100", 4)}, kBetweenSites);
  parse_plan(to_json(plan, "0").dump(), "plan.json");
  plan.training.stack = parse_stack(preset_text(Preset::Kind::kStack, "megatron-core"), "megatron-core");
  plan.layout.split = {6, 6};
  plan.order = make_schedule("zb-h1", {.ranks = 2, .microbatches = 8});
  plan.layout.schedule = plan.order->name;
  parse_plan(to_json(plan, "0").dump(), "plan.json");
}

void read_schedules() {
  for (const char* name : {"1f1b", "interleaved", "dualpipe", "seq1f1b", "pipedream"}) {
    const bool has_chunks = std::string_view(name) == "interleaved";
    parse_schedule_json(
        schedule_to_json(make_schedule(name, {.ranks = 4, .microbatches = 8, .chunks = has_chunks ? 2 : 1})).dump(),
        name);
  }
}

void read_topologies() {
  parse_topology(R"({"nodes": ["a", "b", "s"], "devices": ["a", "b"], "links": [
      {"from": "a", "to": "s", "bandwidth_gb_per_s": 50, "latency_us": 1},
      {"from": "b", "to": "s", "bandwidth_gb_per_s": 50, "both_ways": true}]})",
                 "topology.json");
}

/// Reads costs with split and with whole backwards, each with all that they may have and with what they must have.
void read_costs() {
  const Json split{{"forward_s", 1}, {"input_grad_s", 1}, {"weight_grad_s", 1}},
      whole{{"forward_s", 1}, {"backward_s", 2}};
  for (const Json& least : {split, whole}) {
    parse_costs_file(Json{{"parts", {least}}}.dump(), "costs.json");
    Json most = least;
    most.update(
        {{"recompute_s", 1}, {"activation_bytes", 4}, {"released_at_input_grad_bytes", 2}, {"message_bytes", 1}});
    const Json document{{"parts", {most}},
                        {"embedding", most},
                        {"head", most},
                        {"links", {{{"latency_s", 0}, {"bandwidth_gb_per_s", 25}}}},
                        {"max_activation_bytes", {8}}};
    parse_costs_file(document.dump(), "costs.json");
  }
}

/// Reads the certificates of searches with and without a limit of memory, and with split and whole backwards.
void read_certificates() {
  for (const int most : {2, 0}) {
    for (const bool whole : {false, true}) {
      OrderQuestion question = chain_question(2, 3, {.forward = 2, .input_grad = 2, .weight_grad = 1, .hop = 1}, most);
      question.whole_backwards = whole;
      const FoundSchedule found = search_schedule(question, {.timed_actions = 1e5}).value();
      parse_certificate(certificate_text(certificate_of(question, found)), "certificate.json");
    }
  }
}

Json schema_of(const std::string& title, const std::function<void()>& read) {
  FormRecord record;
  const FormRecord::Scope recording(record);
  read();
  Json schema = record.schema(title);
  schema["properties"]["plumb_format"] = {{"const", 1}};
  return schema;
}

/// The figures that Plumb prints beside a model's sizes may be there, and are refused where they do not follow.
Json schema_of_models(const std::string& title, bool graphs) {
  Json schema = schema_of(title, [graphs] { read_models(graphs); });
  const char* name = graphs ? "vgg-11" : "gpt2";
  const Json figures = shown_figures(parse_model(preset_text(Preset::Kind::kModel, name), name));
  for (const auto& [key, figure] : figures.items())
    schema["properties"][key] = {{"description", "follows from the rest"}, {"type", figure.type_name()}};
  return schema;
}

Json schema_of_plan() {
  Json schema = schema_of("A plan of Plumb's", read_plans);
  const auto in = [](const char* file) { return Json{{"$ref", file}}; };
  schema["properties"]["model"] = {{"anyOf", {in("model.json"), in("layer_graph.json")}}};
  schema["properties"]["cluster"] = in("cluster.json");
  schema["properties"]["training"]["properties"]["stack"] = {{"anyOf", {in("stack.json"), {{"type", "null"}}}}};
  return schema;
}

void matches_stored(const std::string& name, const Json& schema) {
  const char* source = std::getenv("PLUMB_SOURCE");
  REQUIRE_MESSAGE(source != nullptr, "set PLUMB_SOURCE to the source tree");
  const std::string path = std::string(source) + "/docs/schemas/" + name + ".json";
  const std::string text = schema.dump(1) + "\n";
  if (std::getenv("PLUMB_RENEW") != nullptr) write_file(path, text);
  CHECK_MESSAGE(read_file(path) == text,
                path << " is another: run this test with PLUMB_RENEW=1, and look at what changed");
}

}  // namespace

TEST_CASE("the schemas of file forms are what the readers ask") {
  matches_stored("model", schema_of_models("A transformer by its sizes", false));
  matches_stored("layer_graph", schema_of_models("A model as a graph of layers", true));
  matches_stored("cluster", schema_of("A cluster", read_clusters));
  matches_stored("stack", schema_of("A training stack", read_stacks));
  matches_stored("topology", schema_of("A network of nodes and links", read_topologies));
  matches_stored("schedule", schema_of("A schedule", read_schedules));
  matches_stored("plan", schema_of_plan());
  matches_stored("costs", schema_of("Costs of a model's parts", read_costs));
  matches_stored("certificate", schema_of("What a schedule was made for, and why none is faster", read_certificates));
  matches_stored("reliability", schema_of("Failures of a cluster", [] {
                   each_preset(Preset::Kind::kReliability,
                               [](const std::string& text, const std::string& file) { parse_reliability(text, file); });
                 }));
}

}  // namespace plumb::test
