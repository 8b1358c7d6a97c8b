// Experts that the ranks of a group have between them, on a device beside the cpu backend's.

#include "executor/layers/device/expert_exchange.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "executor/training/run.h"
#include "kernels/layer/expert_rows.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

/// DeepSeek's kind, of which experts drop what is over their capacity; its head with a table of its own.
std::vector<Layer> dropping_model(int blocks = 4) {
  return untied(shared_expert_model(blocks));
}

struct ExchangeLayout {
  ProcessGrid grid;
  const char* schedule = "1f1b";
  int zero = 0;
};

RunSpec spread(const std::vector<Layer>& model, const ExchangeLayout& layout) {
  ScheduleParameters shape{.ranks = 2, .microbatches = 2};
  if (std::string(layout.schedule) == "naive") shape.ranks = 1;
  if (std::string(layout.schedule) == "interleaved") shape.chunks = 2;
  RunSpec spec = spec_of_lowered(
      model, lower(make_schedule(layout.schedule, shape), {.data = {.enabled = true, .zero = layout.zero}}),
      layout.grid.data);
  const int pipeline = spec.grid.pipeline;
  spec.grid = layout.grid;
  spec.grid.pipeline = pipeline;
  spec.zero = layout.zero;
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

}  // namespace

TEST_CASE("device experts over replicas give the cpu's losses and gradients, what is dropped included") {
  for (const std::vector<Layer>& model : {mixtral_model(2), dropping_model(2), with_dropout(dropping_model(2))})
    for (const ProcessGrid& grid : {ProcessGrid{.expert = 2, .data = 2}, ProcessGrid{.expert = 2, .data = 4},
                                    ProcessGrid{.expert = 4, .data = 4}}) {
      CAPTURE(grid.expert);
      CAPTURE(grid.data);
      check_beside_cpu(spread(model, {.grid = grid, .schedule = "naive"}));
    }
}

TEST_CASE("device experts over replicas go with every kind of schedule, and with the same bits in any order") {
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "dualpipe"}) {
    CAPTURE(name);
    const RunSpec spec = spread(dropping_model(), {.grid = {.expert = 2, .data = 2}, .schedule = name});
    check_beside_cpu(spec);
    CHECK(on_host(spec, 7U).weights == on_host(spec).weights);
  }
  RunSpec spec = spread(mixtral_model(), {.grid = {.expert = 2, .data = 2}, .schedule = "zb-h1"});
  const RunResult kept = on_host(spec);
  for (const Recompute what : {Recompute::kSelective, Recompute::kStage, Recompute::kFull}) {
    spec.rebuild = what;
    CHECK(on_host(spec).weights == kept.weights);
  }
}

TEST_CASE("device experts are spread over context ranks, and tensor ranks share their channels") {
  std::vector<Layer> wide = mixtral_model(2);
  for (Layer& layer : wide)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 4;
  for (const bool divides_rows : {false, true}) {
    RunSpec spec = spread(dropping_model(2), {.grid = {.tensor = 2, .expert = 2, .data = 2}});
    spec.sequence_parallel = divides_rows;
    spec.clip_norm = 0.1F;  // each element counts once
    check_beside_cpu(spec);
  }
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const ProcessGrid& grid :
         {ProcessGrid{.context = 2, .expert = 2}, ProcessGrid{.tensor = 2, .context = 2, .expert = 4, .data = 2}}) {
      CAPTURE(static_cast<int>(attention));
      CAPTURE(grid.expert);
      RunSpec spec = spread(wide, {.grid = grid});
      spec.context_attention = attention;
      spec.sequence_parallel = grid.tensor > 1;
      check_beside_cpu(spec);
    }
}

TEST_CASE("the state of device experts is sharded over the copies that have the same ones") {
  for (const int zero : {1, 2, 3})
    for (const bool layerwise : {false, true})
      for (const ProcessGrid& grid : {ProcessGrid{.expert = 2, .data = 2}, ProcessGrid{.expert = 2, .data = 4}}) {
        CAPTURE(zero);
        CAPTURE(layerwise);
        CAPTURE(grid.data);
        RunSpec spec = spread(dropping_model(2), {.grid = grid, .zero = zero});
        spec.layerwise = layerwise && zero >= 2;
        if (layerwise) spec.shard_by = ShardBy::kLayer;
        if (zero == 3) spec.clip_norm = 0.1F;
        check_beside_cpu(spec);
      }
}

TEST_CASE("device experts of stages with copies in one schedule are gathered and reduced layer by layer, too") {
  for (const int zero : {2, 3}) {
    CAPTURE(zero);
    RunSpec spec = spread(dropping_model(), {.grid = {.expert = 2, .data = 2}, .schedule = "dualpipe", .zero = zero});
    spec.layerwise = true;
    check_beside_cpu(spec);
  }
}

TEST_CASE("in 16 bits device experts over replicas follow the cpu, sharded too") {
  for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    const bool is_sharded = half == HalfFormat::kBf16;
    RunSpec spec =
        spread(dropping_model(1),
               {.grid = {.expert = 2, .data = is_sharded ? 4 : 2}, .schedule = "naive", .zero = is_sharded ? 3 : 0});
    spec.half = half;
    check_beside_cpu(spec, 2e-2);
  }
}

TEST_CASE("a device holds of the experts' weights, gradients and state what the cpu backend holds") {
  for (const int zero : {0, 1, 2, 3})
    for (const int experts : {2, 4}) {
      CAPTURE(zero);
      CAPTURE(experts);
      const RunSpec spec = spread(mixtral_model(2), {.grid = {.expert = experts, .data = 4}, .zero = zero});
      const RunResult cpu = run(spec), device = on_host(spec);
      REQUIRE(device.parameter_bytes.size() == cpu.parameter_bytes.size());
      for (std::size_t rank = 0; rank < cpu.parameter_bytes.size(); ++rank)
        CHECK(device.parameter_bytes[rank] == cpu.parameter_bytes[rank]);
    }
}

TEST_CASE("blocks between ranks have room for all that can be picked, and not for more") {
  TransformerLayer layer{.experts = 8, .experts_per_token = 4, .expert_ffn = 4};
  const RoutedTokens tokens{.sequences = 3, .tokens = 10, .sequence = 20};
  CHECK(most_rows_to_expert_rank(layer, tokens, 1) == 120);
  CHECK(most_rows_to_expert_rank(layer, tokens, 2) == 120);  // all four picks of a token may be of one rank
  CHECK(most_rows_to_expert_rank(layer, tokens, 4) == 60);
  CHECK(most_rows_to_expert_rank(layer, tokens, 8) == 30);
  layer.capacity_factor = 0.5;  // 20 * 4 / 8 * 0.5 = 5 picks of a sequence
  CHECK(most_rows_to_expert_rank(layer, tokens, 4) == 30);
  layer.capacity_factor = 2;  // 20, of 10 tokens here
  CHECK(most_rows_to_expert_rank(layer, tokens, 4) == 60);
}

}  // namespace plumb::test
