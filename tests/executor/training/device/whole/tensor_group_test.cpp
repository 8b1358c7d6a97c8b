// Tensor ranks on a device beside the cpu backend: sequence parallelism, kv heads that several have, dropout.

#include "executor/layers/device/device_tensor_group.h"

#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec in_groups(const std::vector<Layer>& model, const std::string& name, int ranks, int tensor, int replicas = 1,
                  int zero = 0) {
  const Schedule order = make_schedule(name, {.ranks = ranks, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = replicas > 1, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.grid.tensor = tensor;
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

}  // namespace

TEST_CASE(
    "with sequence parallelism tensor ranks on a device divide the rows between products, and train as the CPU's") {
  for (const auto& [name, ranks, tensor, replicas, zero] : std::vector<std::tuple<const char*, int, int, int, int>>{
           {"1f1b", 1, 2, 1, 0}, {"1f1b", 2, 2, 1, 0}, {"zb-h1", 2, 2, 2, 1}, {"zb-v", 2, 2, 1, 0}})
    for (const std::vector<Layer>& model : {gpt_model(), llama_model()}) {
      CAPTURE(name);
      CAPTURE(ranks);
      RunSpec spec = in_groups(model, name, ranks, tensor, replicas, zero);
      const std::int64_t whole = on_host(spec).peak_memory_bytes.front();
      spec.sequence_parallel = true;
      check_beside_cpu_in_any_order(spec);
      CHECK(on_host(spec).peak_memory_bytes.front() < whole);
    }
}

TEST_CASE("rows that pad a vocabulary train nothing: losses are those without them, on a device as on the CPU") {
  for (const int tensor : {1, 2})
    for (const std::vector<Layer>& model : {gpt_model(), llama_model()}) {
      CAPTURE(tensor);
      std::vector<Layer> padded = model;
      std::get<EmbeddingLayer>(padded.front()).vocab += 6;
      std::get<HeadLayer>(padded.back()).vocab += 6;
      std::get<HeadLayer>(padded.back()).padding = 6;
      const RunSpec spec = in_groups(padded, "1f1b", 2, tensor);
      check_beside_cpu_in_any_order(spec);
      const std::vector<double> losses = run(spec).losses;
      const std::vector<double> without = run(in_groups(model, "1f1b", 2, 1)).losses;
      REQUIRE(losses.size() == without.size());
      for (std::size_t step = 0; step < losses.size(); ++step)
        CHECK(losses[step] == doctest::Approx(without[step]).epsilon(1e-6));  // wider products round otherwise
    }
}

TEST_CASE("kv heads that several tensor ranks on a device have get the sum of their gradients") {
  std::vector<Layer> model = llama_model();
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 1;
  for (const bool divides_rows : {false, true}) {
    RunSpec spec = in_groups(model, "1f1b", 2, 2);
    spec.sequence_parallel = divides_rows;
    check_beside_cpu_in_any_order(spec);
    spec = in_groups(llama_model(), "zb-h1", 2, 4);  // two heads, each of two ranks
    spec.sequence_parallel = divides_rows;
    spec.clip_norm = 0.05;
    check_beside_cpu_in_any_order(spec);
  }
}

TEST_CASE("tensor ranks and replicas on a device drop what the CPU's drop") {
  for (const std::vector<Layer>& model : {llama_model(), untied_gpt_model()})
    for (const auto& [tensor, replicas, divides_rows] :
         std::vector<std::tuple<int, int, bool>>{{2, 1, false}, {2, 1, true}, {1, 2, false}, {2, 2, true}}) {
      CAPTURE(tensor);
      CAPTURE(replicas);
      CAPTURE(divides_rows);
      RunSpec spec = in_groups(with_dropout(model), "1f1b", 2, tensor, replicas);
      spec.sequence_parallel = divides_rows;
      check_beside_cpu_in_any_order(spec);
    }
  RunSpec spec = in_groups(with_dropout(llama_model()), "1f1b", 2, 4);  // blocks of less than a sample
  spec.sequence_parallel = true;
  spec.microbatch = 1;
  check_beside_cpu_in_any_order(spec);
}

TEST_CASE("in bf16 replicas on a device shard as they do in fp32, and follow the CPU") {
  for (const int zero : {0, 1, 2, 3}) {
    CAPTURE(zero);
    RunSpec spec = in_groups(llama_model(), "1f1b", 2, 1, 2, zero);
    spec.steps = 4;
    spec.half = HalfFormat::kBf16;
    const std::vector<double> expected = run(spec).losses, losses = on_host(spec).losses;
    REQUIRE(losses.size() == expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(5e-3));
    CHECK(on_host(spec, 3).losses == losses);
  }
}

}  // namespace plumb::test
