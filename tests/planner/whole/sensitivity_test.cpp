// Every number of a cluster, a model and a training moves the answer the way physics says. The table below has a row
// for each number of the JSON forms; a number without a row fails the second test.

#include <functional>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "planner/spec/stack_spec.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

using nlohmann::json;

enum class Watch { kTime, kMemory, kShortfall };
enum class Moves { kUp, kDown, kNot };

struct Row {
  Watch watch = Watch::kTime;
  Moves moves = Moves::kUp;
  json value;                                   ///< instead of the example's
  std::function<void(json&)> before = nullptr;  ///< makes the number matter, on both sides
  std::function<void(json&)> beside = nullptr;  ///< what must change with it
};

/// Tensor groups of 4 inside nodes, stages on different nodes; a model that is windowless and rotary.
json example_json() {
  const Plan plan{.model = preset_model("llama-3-8b"),
                  .cluster = preset_cluster("h100:16"),
                  .training = {.global_batch = 8, .sequence = 2048},
                  .layout = {.data = 2, .tensor = 4, .pipeline = 2}};
  return to_json(plan, "");
}

void set_precision(json& plan, const char* precision) {
  plan["training"]["precision"] = precision;
}

/// A framework that runs attention in that kernel.
std::function<void(json&)> stack_with(const char* attention) {
  return [attention](json& plan) { plan["training"]["stack"] = {{"name", "any"}, {"attention", attention}}; };
}

/// NCCL's model prices the collectives; the node's efficiency and latency are those of messages inside it.
void stages_beside(json& plan) {
  plan["layout"]["dp"] = 1;
  plan["layout"]["pp"] = 4;
}

/// Activations of sixteen micro-batches, over a link too slow to hide them.
void activations_away(json& plan) {
  plan["training"]["global_batch"] = 32;
  plan["schedule"]["name"] = "gpipe";
  plan["layout"]["offload"] = "activations";
  plan["cluster"]["host"]["device_bandwidth_gb_per_s"] = 5;
}

void optimizer_away(json& plan) {
  plan["layout"]["offload"] = "optimizer";
}

void data_parallel(json& plan) {
  plan["training"]["global_batch"] = 16;
  plan["layout"]["dp"] = 16;
  plan["layout"]["tp"] = 1;
  plan["layout"]["pp"] = 1;
}

void shard_parameters(json& plan) {
  plan["layout"]["zero"] = 3;
}

void crowd(json& plan) {
  plan["cluster"]["device"]["memory_gib"] = 10;
}

const std::map<std::string, Row> kRows = {
    {"cluster.devices",
     {.moves = Moves::kDown,
      .value = 32,
      .before = [](json& p) { p["training"]["global_batch"] = 64; },
      .beside = [](json& p) { p["layout"]["dp"] = 4; }}},
    {"cluster.device.peak_tflops.fp32",
     {.moves = Moves::kDown, .value = 100, .before = [](json& p) { set_precision(p, "fp32"); }}},
    {"cluster.device.peak_tflops.bf16", {.moves = Moves::kDown, .value = 2000}},
    {"cluster.device.peak_tflops.fp16",
     {.moves = Moves::kDown, .value = 2000, .before = [](json& p) { set_precision(p, "fp16"); }}},
    {"cluster.device.peak_tflops.tf32",
     {.moves = Moves::kDown, .value = 1000, .before = [](json& p) { set_precision(p, "tf32"); }}},
    {"cluster.device.peak_tflops.fp8",
     {.moves = Moves::kDown, .value = 3000, .before = [](json& p) { set_precision(p, "fp8"); }}},
    {"cluster.device.fp8_gemm_efficiency",
     {.moves = Moves::kDown, .value = 0.9, .before = [](json& p) { set_precision(p, "fp8"); }}},
    {"cluster.device.memory_gib", {.watch = Watch::kShortfall, .moves = Moves::kDown, .value = 12, .before = crowd}},
    {"cluster.device.reserved_gib", {.watch = Watch::kShortfall, .value = 1, .before = crowd}},
    {"cluster.device.memory_bandwidth_gb_per_s", {.moves = Moves::kDown, .value = 8000}},
    {"cluster.device.gemm_efficiency", {.moves = Moves::kDown, .value = 0.9}},
    {"cluster.device.attention_efficiency", {.moves = Moves::kDown, .value = 0.9}},
    {"cluster.device.attention.cudnn.forward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("cudnn")}},
    {"cluster.device.attention.cudnn.backward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("cudnn")}},
    {"cluster.device.attention.cudnn.half_sequence", {.value = 500, .before = stack_with("cudnn")}},
    {"cluster.device.attention.cudnn.backward_half_sequence", {.value = 2000, .before = stack_with("cudnn")}},
    {"cluster.device.attention.flash2.forward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("flash2")}},
    {"cluster.device.attention.flash2.backward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("flash2")}},
    {"cluster.device.attention.flash2.half_sequence", {.value = 500, .before = stack_with("flash2")}},
    {"cluster.device.attention.flash2.backward_half_sequence", {.value = 2000, .before = stack_with("flash2")}},
    {"cluster.device.attention.flash3.forward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("flash3")}},
    {"cluster.device.attention.flash3.backward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("flash3")}},
    {"cluster.device.attention.flash3.half_sequence", {.value = 500, .before = stack_with("flash3")}},
    {"cluster.device.attention.flash3.backward_half_sequence", {.value = 2000, .before = stack_with("flash3")}},
    {"cluster.device.attention.triton.forward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("triton")}},
    {"cluster.device.attention.triton.backward", {.moves = Moves::kDown, .value = 0.9, .before = stack_with("triton")}},
    {"cluster.device.attention.triton.half_sequence", {.value = 500, .before = stack_with("triton")}},
    {"cluster.device.attention.triton.backward_half_sequence", {.value = 2000, .before = stack_with("triton")}},
    {"cluster.device.memory_efficiency", {.moves = Moves::kDown, .value = 0.9}},
    {"cluster.device.kernel_fixed_us", {.value = 20}},
    {"cluster.device.gemm_fixed_us", {.value = 20}},
    {"cluster.device.wave_fixed_us", {.value = 20}},
    {"cluster.device.compute_units", {.value = 150}},  // 128 tiles leave more units of 150 idle than of 132
    {"cluster.device.gemm_tile", {.value = 256}},
    {"cluster.node.devices", {.value = 2}},  // tensor groups cross nodes
    {"cluster.node.bandwidth_gb_per_s", {.moves = Moves::kDown, .value = 900}},
    {"cluster.node.efficiency", {.moves = Moves::kDown, .value = 1, .before = stages_beside}},
    {"cluster.node.latency_us", {.value = 30, .before = stages_beside}},
    {"cluster.network.bandwidth_gb_per_s", {.moves = Moves::kDown, .value = 100}},
    {"cluster.network.efficiency", {.moves = Moves::kDown, .value = 1}},
    {"cluster.network.latency_us", {.value = 1000}},
    {"cluster.host.memory_gib", {.moves = Moves::kNot, .value = 4096, .before = optimizer_away}},  // enough is enough
    {"cluster.host.memory_bandwidth_gb_per_s", {.moves = Moves::kDown, .value = 1000, .before = optimizer_away}},
    {"cluster.host.memory_efficiency", {.moves = Moves::kDown, .value = 1, .before = optimizer_away}},
    {"cluster.host.device_bandwidth_gb_per_s", {.moves = Moves::kDown, .value = 100, .before = activations_away}},
    {"cluster.host.device_efficiency", {.moves = Moves::kDown, .value = 1, .before = activations_away}},
    {"cluster.operation.usd_per_device_hour", {.moves = Moves::kNot, .value = 5}},  // of objectives, and not of a step
    {"cluster.operation.idle_w", {.moves = Moves::kNot, .value = 200}},
    {"cluster.operation.busy_w", {.moves = Moves::kNot, .value = 800}},
    {"cluster.nccl.nic_latency_us", {.value = 10, .before = data_parallel}},
    {"cluster.nccl.low_latency_launch_us", {.value = 50}},
    {"cluster.nccl.simple_launch_us", {.value = 50}},
    {"cluster.nccl.bandwidth_scale", {.value = 0.5}},
    {"model.layers", {.value = 34}},
    {"model.hidden", {.value = 5120}},
    {"model.heads", {.value = 64}},
    {"model.kv_heads", {.value = 16}},
    {"model.head_size", {.value = 192}},
    {"model.ffn", {.value = 20480}},
    {"model.vocab", {.value = 256512}},
    {"model.sequence", {.moves = Moves::kNot, .value = 123}},  // the training says its own
    {"model.positions", {.watch = Watch::kMemory, .value = 1000000}},
    {"model.norm_epsilon", {.moves = Moves::kNot, .value = 1e-3}},  // a value, not a size
    {"model.rotary_size", {.moves = Moves::kDown, .value = 32}},
    {"model.rope_theta", {.moves = Moves::kNot, .value = 1e6}},  // a value, not a size
    {"model.window", {.moves = Moves::kDown, .value = 256}},
    {"training.global_batch", {.value = 16}},
    {"training.seq", {.value = 4096}},
};

/// Dotted paths of the numbers below `value`; {"value", "source"} is one.
void collect_numbers(const json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_number() || (value.is_object() && value.contains("value"))) return found.push_back(path);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) collect_numbers(inner, path + "." + key, found);
}

void set_number(json& document, const std::string& path, const json& value) {
  std::string pointer = "/" + path;
  for (char& c : pointer) {
    if (c == '.') c = '/';
  }
  document[json::json_pointer(pointer)] = value;
}

double watched(const json& plan_json, Watch watch) {
  const Plan plan = plan_from_json(plan_json, "plan");
  const Evaluation evaluation = evaluate(plan, {.record_timeline = false});
  REQUIRE(evaluation.exists);
  if (watch == Watch::kTime) return step_time(evaluation.simulation).count();
  const auto peak = static_cast<double>(evaluation.simulation.peak_memory_bytes[0]);
  return watch == Watch::kMemory
             ? peak
             : peak - static_cast<double>(plan.cluster.device.memory_bytes - plan.cluster.device.reserved_bytes);
}

}  // namespace

TEST_CASE("every number moves the answer the way physics says") {
  for (const auto& [path, row] : kRows) {
    CAPTURE(path);
    json before = example_json();
    if (row.before) row.before(before);
    json after = before;
    set_number(after, path, row.value);
    if (row.beside) row.beside(after);
    const double was = watched(before, row.watch);
    const double is = watched(after, row.watch);
    switch (row.moves) {
      case Moves::kUp:
        CHECK(is > was);
        break;
      case Moves::kDown:
        CHECK(is < was);
        break;
      case Moves::kNot:
        CHECK(is == was);
        break;
    }
  }
}

TEST_CASE("every number of the JSON forms has a row in the table, and every row a number") {
  std::vector<std::string> numbers;
  for (const char* part : {"cluster", "model", "training"}) collect_numbers(example_json()[part], part, numbers);
  for (const std::string& path : numbers) {
    CAPTURE(path);
    CHECK(kRows.contains(path));
  }
  CHECK(numbers.size() == kRows.size());
}

TEST_CASE("every number of a stack moves the answer the way physics says") {
  const json base = {{"name", "any"}, {"attention", "unfused"}, {"kernel_launch_us", 1}};
  const std::map<std::string, Row> rows = {
      {"fused_softmax_rows", {.value = 3}},  // 8 heads a rank are no multiple of 3
      {"vocab_multiple", {.value = 4096}},
      {"memory_traffic", {.value = 2}},
      {"tensor_hidden", {.moves = Moves::kDown, .value = 0.5}},
      {"expert_hidden", {.moves = Moves::kNot, .value = 0.5}},  // there are no experts
      {"expert_half_rows", {.moves = Moves::kNot, .value = 100}},
      {"expert_gemm_share", {.moves = Moves::kNot, .value = 0.5}},
      {"narrow_expert_ffn", {.moves = Moves::kNot, .value = 1024}},
      {"expert_imbalance", {.moves = Moves::kNot, .value = 2}},
      {"expert_launches", {.moves = Moves::kNot, .value = 1000}},
      {"dispatch_share", {.moves = Moves::kNot, .value = 0.5}},
      {"fp8_cast_bytes",
       {.value = 400,
        .before =
            [](json& plan) {
              plan["training"]["precision"] = "fp8";
              plan["cluster"]["device"]["peak_tflops"]["fp8"] = 2000;
            }}},
      {"data_hidden", {.moves = Moves::kDown, .value = 1}},
      {"gather_hidden", {.moves = Moves::kDown, .value = 1, .before = [](json& plan) { plan["layout"]["zero"] = 1; }}},
      {"gather_copy_bytes", {.value = 4, .before = shard_parameters}},
      {"reduce_copy_bytes", {.value = 6, .before = shard_parameters}},
      {"tensor_collective_us", {.value = 500}},
      {"tensor_step_us", {.value = 500}},
      {"gradient_bytes", {.moves = Moves::kDown, .value = 2}},
      {"kernel_launch_us", {.value = 10000}},
      {"host_sharpness", {.value = 4}},
      {"layer_launches_forward", {.value = 100000}},
      {"layer_launches_backward", {.value = 100000}},
      {"action_overhead_us", {.value = 1000}},
      {"logit_bytes",
       {.watch = Watch::kMemory,
        .value = 10,
        .before =
            [](json& plan) {
              plan["layout"]["pp"] = 1;
              plan["layout"]["dp"] = 4;
            }}},
      {"embedding_gradient_bytes", {.watch = Watch::kMemory, .value = 200}},
      {"step_traffic", {.value = 1000}},
      {"fp8_gemm_factor",
       {.value = 0.5,
        .before =
            [](json& plan) {
              plan["training"]["precision"] = "fp8";
              plan["cluster"]["device"]["peak_tflops"]["fp8"] = 2000;
            }}},
      {"step_bytes", {.watch = Watch::kMemory, .value = 6}},
      {"norm_bytes", {.watch = Watch::kMemory, .value = 100, .before = [](json& plan) { plan["layout"]["zero"] = 1; }}},
      {"bucket_mib", {.watch = Watch::kMemory, .value = 100, .before = [](json& plan) { plan["layout"]["zero"] = 1; }}},
      {"state_bytes", {.watch = Watch::kMemory, .value = 100}},
      {"copied_gradient_bytes", {.watch = Watch::kMemory, .value = 2}},
      {"embedding_outputs", {.watch = Watch::kMemory, .value = 4}},
      {"workspace_mib", {.watch = Watch::kMemory, .value = 64}},
      {"memory_headroom", {.watch = Watch::kMemory, .moves = Moves::kNot, .value = 0.1}},  // a search's alone
      {"offloaded_share", {.watch = Watch::kMemory, .moves = Moves::kDown, .value = 0.9}},
  };
  for (const auto& [key, row] : rows) {
    CAPTURE(key);
    json before = example_json();
    before["training"]["stack"] = base;
    if (row.before) row.before(before);
    json after = before;
    after["training"]["stack"][key] = row.value;
    const double was = watched(before, row.watch);
    const double is = watched(after, row.watch);
    if (row.moves == Moves::kUp) CHECK(is > was);
    if (row.moves == Moves::kDown) CHECK(is < was);
    if (row.moves == Moves::kNot) CHECK(is == was);
  }
  const nlohmann::ordered_json defaults = to_json(StackSpec{});
  for (const auto& [key, value] : defaults.items()) {
    CAPTURE(key);
    if (value.is_number()) CHECK(rows.contains(key));
  }
}

}  // namespace plumb::test
