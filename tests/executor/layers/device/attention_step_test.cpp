// Context ranks on a device beside the cpu backend: the ring and Ulysses, in products of groups.

#include "executor/layers/device/attention_step.h"

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

/// Blocks of four query heads, and a window where it is not 0.
std::vector<Layer> with_heads(std::vector<Layer> model, std::int64_t window = 0) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->heads = 4;
      block->head_size = 4;
      block->kv_heads = std::max<std::int64_t>(2, block->kv_heads);
      block->window = window;
    }
  return model;
}

RunSpec shared(const std::vector<Layer>& model, const std::string& name, const ProcessGrid& grid,
               ContextAttention attention, int zero = 0) {
  const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
  const bool has_copies = grid.data * grid.context > 1;
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = has_copies, .zero = zero}}), 1);
  spec.grid = grid;
  spec.grid.pipeline = 2;
  spec.zero = zero;
  spec.context_attention = attention;
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

constexpr ContextAttention kBothAttentions[] = {ContextAttention::kUlysses, ContextAttention::kRing};

}  // namespace

TEST_CASE("context ranks on a device train as the CPU's, by all-to-all and by the ring") {
  for (const ContextAttention attention : kBothAttentions)
    for (const std::vector<Layer>& model :
         {with_heads(llama_model()), with_heads(gpt_model()), with_heads(llama_model(), 3)}) {
      CAPTURE(static_cast<int>(attention));
      check_beside_cpu_in_any_order(shared(model, "1f1b", {.context = 2}, attention));
    }
}

TEST_CASE("a device bounds scores as the CPU does, whole, in slices, in groups of ranks and in bf16") {
  std::vector<Layer> model = with_heads(llama_model(2), 5);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->attention_softcap = 1.5;
  check_beside_cpu_in_any_order(shared(model, "1f1b", {}, ContextAttention::kRing));
  for (const ContextAttention attention : kBothAttentions) {
    CAPTURE(static_cast<int>(attention));
    RunSpec spec = shared(model, "1f1b", {.context = 2}, attention);
    check_beside_cpu(spec);
    spec.schedule =
        lower(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2}), {.data = {.enabled = true}});
    check_beside_cpu(spec);
  }
  RunSpec spec = shared(model, "1f1b", {}, ContextAttention::kRing);
  spec.half = HalfFormat::kBf16;
  check_beside_cpu(spec, 2e-2);
}

TEST_CASE("latent attention on a device trains as the CPU's, in every group of ranks and in slices") {
  const auto layout = [](const ProcessGrid& grid) {
    return shared(latent_model(), "1f1b", grid, ContextAttention::kRing);
  };
  check_beside_cpu_in_any_order(layout({}));
  check_beside_cpu(layout({.context = 2}));
  for (const bool divides_rows : {false, true}) {
    CAPTURE(divides_rows);
    RunSpec spec = layout({.tensor = 2});
    spec.sequence_parallel = divides_rows;
    check_beside_cpu(spec);
  }
  RunSpec spec = layout({.context = 2});
  spec.schedule =
      lower(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2}), {.data = {.enabled = true}});
  check_beside_cpu(spec);
  for (const Recompute rebuild : {Recompute::kSelective, Recompute::kStage}) {
    RunSpec rebuilt = layout({});
    rebuilt.rebuild = rebuild;
    CHECK(on_host(rebuilt).weights == on_host(layout({})).weights);
  }
  RunSpec stored = layout({});
  stored.half = HalfFormat::kBf16;
  check_beside_cpu(stored, 2e-2);
}

TEST_CASE("sinks go with context ranks, tensor ranks and slices on a device, as on the CPU") {
  std::vector<Layer> model = with_heads(llama_model(2), 3);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->sinks = true;
      block->kv_heads = 4;
    }
  for (const ContextAttention attention : kBothAttentions)
    for (const int tensor : {1, 2}) {
      CAPTURE(static_cast<int>(attention));
      CAPTURE(tensor);
      RunSpec spec = shared(model, "1f1b", {.tensor = tensor, .context = 2}, attention);
      spec.steps = 3;
      check_beside_cpu_in_any_order(spec);
      spec.schedule =
          lower(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2}), {.data = {.enabled = true}});
      check_beside_cpu(spec);
    }
}

TEST_CASE("four of them too, with one sequence and with two") {
  std::vector<Layer> model = with_heads(gpt_model());
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 4;
  for (const ContextAttention attention : kBothAttentions)
    for (const int microbatch : {1, 2}) {
      CAPTURE(static_cast<int>(attention));
      CAPTURE(microbatch);
      RunSpec spec = shared(model, "gpipe", {.context = 4}, attention);
      spec.microbatch = microbatch;
      check_beside_cpu_in_any_order(spec);
    }
}

TEST_CASE("context ranks go with tensor ranks, replicas, sharding, dropout and recomputation") {
  std::vector<Layer> model = with_heads(gpt_model());
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 4;
  for (const ContextAttention attention : kBothAttentions) {
    CAPTURE(static_cast<int>(attention));
    for (const int zero : {1, 3}) {
      RunSpec spec = shared(with_dropout(model), "zb-h1", {.tensor = 2, .context = 2, .data = 2}, attention, zero);
      spec.sequence_parallel = zero == 1;
      spec.clip_norm = 0.05;
      check_beside_cpu_in_any_order(spec);
    }
    for (const Recompute rebuild : {Recompute::kStage, Recompute::kSelective}) {
      RunSpec spec = shared(with_heads(llama_model()), "1f1b", {.context = 2}, attention);
      spec.rebuild = rebuild;
      check_beside_cpu_in_any_order(spec);
    }
  }
}

TEST_CASE("in bf16 context ranks on a device follow the CPU's") {
  for (const ContextAttention attention : kBothAttentions) {
    CAPTURE(static_cast<int>(attention));
    RunSpec spec = shared(with_heads(llama_model()), "1f1b", {.context = 2}, attention);
    spec.steps = 4;
    spec.half = HalfFormat::kBf16;
    check_losses(on_host(spec), run(spec), 5e-3);
  }
}

}  // namespace plumb::test
