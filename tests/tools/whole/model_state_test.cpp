// The planner's memory of weights, gradients and optimizer state is held against the bytes of the executor's ranks.

#include <doctest/doctest.h>

#include "executor/spec/run_shape.h"
#include "executor/training/run.h"
#include "planner/price/memory/stage_memory.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tools/runs/lower_plan.h"

namespace plumb::test {
namespace {

constexpr TransformerLayer kSplitBlock{
    .hidden = 16, .heads = 4, .kv_heads = 2, .head_size = 4, .ffn = 24, .norm = NormKind::kLayerNorm, .rotary_size = 4};

std::vector<std::vector<Layer>> stages_of(int stages) {
  const Layer embedding = EmbeddingLayer{.vocab = 256, .hidden = 16}, head = HeadLayer{.vocab = 256, .hidden = 16};
  if (stages == 1) return {{embedding, kSplitBlock, kSplitBlock, head}};
  return {{embedding, kSplitBlock}, {kSplitBlock, head}};
}

RunSpec spec_of_training(const Layout& layout, const TrainingSpec& training) {
  const Schedule order = make_schedule("1f1b", {.ranks = layout.pipeline, .microbatches = 2});
  const std::string text = "a small text that is long enough for a few short sequences of bytes";
  RunSpec spec{.stage_layers = stages_of(layout.pipeline),
               .grid = grid_of(layout),
               .schedule = lower(order, {.data = {.enabled = layout.data > 1, .zero = layout.zero}}),
               .sequence = training.sequence,
               .optimizer = optimizer_settings(training.optimizer),
               .zero = layout.zero,
               .text = {text.begin(), text.end()}};
  if (training.precision == Precision::kBf16) spec.half = HalfFormat::kBf16;
  if (training.precision == Precision::kFp16) spec.half = HalfFormat::kFp16;
  return spec;
}

}  // namespace

TEST_CASE("a rank holds the weights, gradients and optimizer state that the memory model predicts, to the byte") {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16})
    for (const Optimizer optimizer :
         {Optimizer::kAdamW, Optimizer::kSgd, Optimizer::kLion, Optimizer::kAdamW8Bit, Optimizer::kAdafactor})
      for (const int data : {1, 2, 4})
        for (const int pipeline : {1, 2})
          for (const int tensor : {1, 2})
            for (const int zero : {0, 1, 2, 3}) {
              const bool whole_tensors = optimizer == Optimizer::kAdamW8Bit || optimizer == Optimizer::kAdafactor;
              if (data * tensor * pipeline > 8 || (data == 1 && zero > 0)) continue;
              if (whole_tensors && (tensor > 1 || zero > 0)) continue;  // the executor refuses these
              const Layout layout{.data = data, .tensor = tensor, .pipeline = pipeline, .zero = zero};
              const TrainingSpec training{
                  .global_batch = 2 * data, .sequence = 8, .precision = precision, .optimizer = optimizer};
              CAPTURE(to_text(layout));
              CAPTURE(precision_name(precision));
              const RunSpec spec = spec_of_training(layout, training);
              const std::vector<ParameterBytes> held = run(spec).parameter_bytes;
              for (int rank = 0; rank < pipeline; ++rank) {
                const auto stage = static_cast<std::size_t>(rank);
                const StageMemory predicted = stage_memory(spec.stage_layers[stage], training, layout, {});
                const auto first = static_cast<std::size_t>(world_rank_of(spec.grid, {.pipeline = rank}));
                CHECK(held[first] == ParameterBytes{.weights = predicted.parameter_bytes,
                                                    .gradients = predicted.gradient_bytes,
                                                    .optimizer = predicted.optimizer_bytes});
              }
            }
}

TEST_CASE("routed experts are a share of the expert group's, and their state of the replicas that have the same ones") {
  TransformerLayer mixture = kSplitBlock;
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 24;
  mixture.shared_ffn = 8;
  for (const int data : {1, 2, 4})
    for (const int context : {1, 2})
      for (const int tensor : {1, 2})
        for (const int expert : {1, 2, 4})
          for (const int zero : {0, 1, 2, 3}) {
            if (data * context * tensor > 8 || data * context % expert != 0 || (data * context == 1 && zero > 0))
              continue;
            const Layout layout{.data = data,
                                .tensor = tensor,
                                .context = context,
                                .expert = expert,
                                .expert_tensor = tensor,
                                .zero = zero};
            CAPTURE(to_text(layout));
            const TrainingSpec training{
                .global_batch = 2 * data, .sequence = 8, .precision = Precision::kBf16, .optimizer = Optimizer::kAdamW};
            RunSpec spec = spec_of_training(layout, training);
            spec.schedule = lower(make_schedule("1f1b", {.ranks = 1, .microbatches = 2}),
                                  {.data = {.enabled = data * context > 1, .zero = zero}});
            spec.stage_layers[0][1] = mixture;
            const StageMemory predicted = stage_memory(spec.stage_layers[0], training, layout, {});
            for (const ParameterBytes& held : run(spec).parameter_bytes)
              CHECK(held == ParameterBytes{.weights = predicted.parameter_bytes,
                                           .gradients = predicted.gradient_bytes,
                                           .optimizer = predicted.optimizer_bytes});
          }
}

TEST_CASE("copies of a stage in one pipeline share state as replicas do, with experts spread or not") {
  TransformerLayer mixture = kSplitBlock;
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 24;
  for (const char* name : {"dualpipe", "chimera"})
    for (const int data : {1, 2})
      for (const int expert : {1, 2})
        for (const int zero : {0, 1, 2, 3}) {
          if (data % expert != 0) continue;
          const Layout layout{.data = data, .pipeline = 2, .expert = expert, .zero = zero, .schedule = name};
          CAPTURE(to_text(layout));
          const TrainingSpec training{.global_batch = 2 * data, .sequence = 8, .precision = Precision::kBf16};
          RunSpec spec = spec_of_training(layout, training);
          spec.schedule = lower(make_schedule(name, {.ranks = 2, .microbatches = 2}),
                                {.data = {.enabled = data > 1, .zero = zero}});
          spec.stage_layers[0][1] = mixture;
          spec.stage_layers = {spec.stage_layers[0], spec.stage_layers[1], spec.stage_layers[0], spec.stage_layers[1]};
          Layout shared = layout;
          shared.data *= 2;  // price_layout does so too
          const StageMemory first = stage_memory(spec.stage_layers[0], training, shared, {});
          const StageMemory last = stage_memory(spec.stage_layers[1], training, shared, {});
          for (const ParameterBytes& held : run(spec).parameter_bytes)
            CHECK(held == ParameterBytes{.weights = first.parameter_bytes + last.parameter_bytes,
                                         .gradients = first.gradient_bytes + last.gradient_bytes,
                                         .optimizer = first.optimizer_bytes + last.optimizer_bytes});
        }
}

}  // namespace plumb::test
