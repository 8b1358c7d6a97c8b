// The bytes of a micro-batch that the planner counts on a device of Plumb's own executor are held against those for
// which the device's stage reserves places.

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "executor/stages/device/device_stage.h"
#include "planner/price/memory/device_memory.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

struct Division {
  int tensor = 1;
  bool sequence_parallel = false;
  int expert = 1;
  int context = 1;
  ContextAttention attention = ContextAttention::kRing;
};

constexpr std::int64_t kSequence = 8;

LayerWork work_under(const Division& division) {
  return {.microbatch = 2,
          .sequence = kSequence,
          .tensor_parallel = division.tensor,
          .sequence_parallel = division.sequence_parallel,
          .context_parallel = division.context,
          .exchanges_heads = division.attention == ContextAttention::kUlysses,
          .experts = {.parallel = division.expert, .tensor = division.tensor}};
}

StageRebuild rebuild_of(Recompute recompute, BackwardForm form) {
  if (recompute == Recompute::kNone) return {};
  const bool is_full = recompute == Recompute::kFull;
  Recompute what = Recompute::kSelective;
  if (is_full) what = form.recompute_actions ? Recompute::kStage : Recompute::kFull;
  return {.what = what, .at_once = form.recompute_actions || (form.split && !is_full), .splits = form.split};
}

StageMemory placed(const std::vector<Layer>& layers, const Division& division, std::optional<HalfFormat> half,
                   const StageRebuild& rebuild) {
  LayerWork work = work_under(division);  // of this rank
  work.sequence /= division.context;
  work.context_parallel = 1;
  const DeviceStage stage({.layers = layers,
                           .tensor = {.ranks = division.tensor},
                           .context = {.ranks = division.context, .attention = division.attention},
                           .experts = {.ranks = division.expert, .tensor = {.ranks = division.tensor}},
                           .work = work,
                           .microbatches = 4,
                           .half = half,
                           .gradient_scales = std::vector<float>(4, 1.0F),
                           .rebuild = rebuild});
  return stage.memory();
}

std::vector<std::vector<Layer>> models() {
  return {untied(gpt_model(2)),
          with_parallel_residuals(untied(gpt_model(2))),
          with_dropout(untied(gpt_model(2))),
          llama_model(3),
          mixtral_model(3),
          mamba2_model(),
          untied(shared_expert_model(2))};
}

bool has_experts(const std::vector<Layer>& model) {
  for (const Layer& layer : model)
    if (expert_parameter_count(layer) > 0) return true;
  return false;
}

void check(const std::vector<Layer>& layers, const Division& division, std::optional<HalfFormat> half,
           Recompute recompute, BackwardForm form) {
  const TrainingSpec training{
      .global_batch = 1, .sequence = kSequence, .precision = half ? Precision::kBf16 : Precision::kFp32};
  std::vector<DeviceFootprint> footprints;
  for (const Layer& layer : layers) footprints.push_back(device_footprint(layer, training, work_under(division)));
  const StageMemory counted = device_activations(footprints, recompute, form);
  const StageMemory device = placed(layers, division, half, rebuild_of(recompute, form));
  const std::int64_t messages = footprints.front().input_bytes + footprints.back().output_bytes;
  CHECK(counted.forward_bytes == device.forward_bytes);
  CHECK(counted.recompute_bytes == device.recompute_bytes);
  if (form.split) CHECK(counted.released_at_input_grad_bytes == device.released_at_input_grad_bytes);
  CHECK(counted.forward_workspace_bytes - messages == device.forward_workspace_bytes);
  CHECK(counted.backward_workspace_bytes - messages == device.backward_workspace_bytes);
}

}  // namespace

TEST_CASE("slices of a micro-batch keep as many bytes of its sequences as are counted") {
  for (const std::vector<Layer>& model : {untied(gpt_model(2)), llama_model(3)})
    for (const Division& division : {Division{}, Division{.tensor = 2}})
      for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)}) {
        const DeviceStage stage({.layers = model,
                                 .tensor = {.ranks = division.tensor},
                                 .work = work_under(division),
                                 .slices = 2,
                                 .microbatches = 4,
                                 .half = half,
                                 .gradient_scales = std::vector<float>(4, 1.0F)});
        SequenceBytes counted;
        for (const Layer& layer : model) {
          const SequenceBytes own =
              sequence_bytes(layer_program(layer, work_under(division), Machine::kDevice), half ? 2 : 4);
          counted.kept += own.kept;
          counted.gradients += own.gradients;
        }
        CHECK(counted.kept > 0);
        CHECK(counted.kept == stage.slices().sequence_bytes());
        CHECK(counted.gradients == stage.slices().sequence_gradient_bytes());
      }
}

TEST_CASE("a device takes as many bytes for a micro-batch as the planner counts, kind by kind, to the byte") {
  for (const std::vector<Layer>& model : models())
    for (const Division& division :
         {Division{}, Division{.tensor = 2}, Division{.tensor = 2, .sequence_parallel = true}, Division{.expert = 2},
          Division{.tensor = 2, .sequence_parallel = true, .expert = 2}, Division{.context = 2},
          Division{.context = 2, .attention = ContextAttention::kUlysses},
          Division{.tensor = 2, .sequence_parallel = true, .expert = 2, .context = 2}})
      for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)})
        for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
          for (const BackwardForm form :
               {BackwardForm{}, BackwardForm{.split = true}, BackwardForm{.recompute_actions = true},
                BackwardForm{.split = true, .recompute_actions = true}}) {
            if (division.expert > 1 && !has_experts(model)) continue;
            CAPTURE(division.tensor);
            CAPTURE(division.sequence_parallel);
            CAPTURE(division.expert);
            CAPTURE(division.context);
            CAPTURE(half.has_value());
            CAPTURE(static_cast<int>(recompute));
            CAPTURE(form.split);
            CAPTURE(form.recompute_actions);
            // The whole model, its blocks alone, and its end are checked.
            check(model, division, half, recompute, form);
            check({model.begin() + 1, model.end() - 1}, division, half, recompute, form);
            check({model.end() - 2, model.end()}, division, half, recompute, form);
          }
}

}  // namespace plumb::test
