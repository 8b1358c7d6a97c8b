// Micro-batches in slices of their sequences on a device, beside the cpu backend: of slices, and of whole sequences.

#include <algorithm>
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

struct SliceLayout {
  int tensor = 1, replicas = 1, zero = 0;
  bool scatters = false;  // sequence parallelism
};

RunSpec sliced(const std::vector<Layer>& model, const std::string& name, int slices, const SliceLayout& layout = {}) {
  const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4, .slices = slices});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = layout.replicas > 1, .zero = layout.zero}}),
                                 layout.replicas);
  spec.grid.tensor = layout.tensor;
  spec.sequence_parallel = layout.scatters;
  spec.zero = layout.zero;
  spec.sequence = 8;
  spec.microbatch = 2;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

/// Returns the training with whole sequences.
RunSpec with_whole_sequences(RunSpec spec) {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  spec.schedule = lower(order, {.data = {.enabled = spec.grid.data > 1, .zero = spec.zero}});
  return spec;
}

/// `spec` in slices on a device, beside `whole` on the CPU.
void check_slices_beside(const RunSpec& spec, const RunSpec& whole) {
  const RunResult device = on_host(spec);
  check_beside(device, run(whole, {.capture_gradients = true, .capture_weights = true}));
  check_any_order(spec, device);
}

void check_beside_whole_sequences(const RunSpec& spec) {
  check_slices_beside(spec, with_whole_sequences(spec));
}

std::vector<Layer> with_window(std::vector<Layer> model, std::int64_t window) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->window = window;
  return model;
}

}  // namespace

TEST_CASE("slices on a device give the losses and gradients of whole sequences on the CPU") {
  for (const std::string name : {"seq1f1b", "terapipe"})
    for (const std::vector<Layer>& model :
         {llama_model(), untied_gpt_model(), tied_llama_model(), with_window(llama_model(), 3)})
      for (const int slices : {2, 3}) {  // of 2 and 3 tokens the latter
        CAPTURE(name);
        CAPTURE(slices);
        check_beside_whole_sequences(sliced(model, name, slices));
      }
}

TEST_CASE("slices go with dropout, tensor ranks, replicas, sharding and clipped gradients") {
  for (const SliceLayout& layout : {SliceLayout{.tensor = 2}, SliceLayout{.tensor = 2, .scatters = true},
                                    SliceLayout{.tensor = 2, .replicas = 2, .zero = 1},
                                    SliceLayout{.replicas = 2, .zero = 2}, SliceLayout{.replicas = 2, .zero = 3}}) {
    CAPTURE(layout.tensor);
    CAPTURE(layout.zero);
    RunSpec spec = sliced(with_dropout(untied_gpt_model()), "seq1f1b", layout.scatters ? 2 : 3, layout);
    spec.clip_norm = 0.05;
    check_beside_whole_sequences(spec);
  }
  RunSpec spec = sliced(llama_model(), "seq1f1b", 2, {.replicas = 2, .zero = 3});
  spec.layerwise = true;
  check_beside_whole_sequences(spec);
}

TEST_CASE("context ranks share each slice, by all-to-all and by the ring") {
  std::vector<Layer> model = untied_gpt_model();
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->heads = block->kv_heads = 4;
      block->head_size = 4;
    }
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const std::vector<Layer>& of : {with_dropout(model), with_window(model, 5)})
      for (const std::string name : {"seq1f1b", "terapipe"}) {
        CAPTURE(static_cast<int>(attention));
        CAPTURE(name);
        RunSpec spec = sliced(of, name, 2);
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4, .slices = 2});
        spec.schedule = lower(order, {.data = {.enabled = true}});
        spec.sequence = 16;
        spec.grid.context = 2;
        spec.context_attention = attention;
        RunSpec alone = with_whole_sequences(spec);
        alone.grid.context = 1;
        alone.schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {});
        check_slices_beside(spec, alone);
        spec.rebuild = Recompute::kStage;
        check_slices_beside(spec, alone);
      }
}

TEST_CASE("slices that are computed again have the same bits") {
  for (const std::string name : {"seq1f1b", "terapipe"}) {
    const RunSpec spec = sliced(with_dropout(untied_gpt_model()), name, 3);
    const RunResult kept = on_host(spec);
    for (const Recompute rebuild : {Recompute::kStage, Recompute::kFull, Recompute::kSelective}) {
      CAPTURE(static_cast<int>(rebuild));
      RunSpec again = spec;
      again.rebuild = rebuild;
      const RunResult rebuilt = on_host(again, 5);
      CHECK(rebuilt.losses == kept.losses);
      CHECK(rebuilt.weights == kept.weights);
    }
  }
}

TEST_CASE("the backward of a slice may come in two parts") {
  Schedule order = make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2});
  for (std::vector<Action>& actions : order.ranks) {
    std::vector<Action> split, late;  // all weight gradients behind the last input gradient
    for (Action action : actions) {
      if (action.op == Op::kBackward) {
        action.op = Op::kWeightGrad;
        late.push_back(action);
        action.op = Op::kInputGrad;
      }
      split.push_back(action);
    }
    split.insert(split.end(), late.begin(), late.end());
    actions = split;
  }
  RunSpec spec = sliced(llama_model(), "seq1f1b", 2);
  spec.schedule = lower(order, {});
  check_beside_whole_sequences(spec);
}

TEST_CASE("in bf16 slices on a device follow the CPU's") {
  RunSpec spec = sliced(llama_model(), "seq1f1b", 3);
  spec.steps = 4;
  spec.half = HalfFormat::kBf16;
  check_losses(on_host(spec), run(with_whole_sequences(spec)), 5e-3);
}

}  // namespace plumb::test
