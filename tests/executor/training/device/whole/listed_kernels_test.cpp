// Kernels that the planner prices on a device against those that a run enqueues: kernel by kernel, in their order, with
// shapes and the elements that they move. What is not alike stands in a table with its reason.

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/training/device/run_device.h"
#include "kernels/layer.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/executor/machines/noted_kernels.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr int kListedMicrobatches = 3;

using CallsByName = std::map<std::string, std::vector<NotedKernel>>;

/// Notes what is enqueued, by call, and runs nothing.
class ListingMachine : public HostMachine {
 public:
  explicit ListingMachine(std::optional<HalfFormat> half) : HostMachine(half), kernels_(half ? 2 : 4) {}
  void begin_call(std::size_t index, int, DeviceStream, const char* name) override {
    enqueued_ = index + 1;
    name_ = name;
  }
  void wait_for(std::size_t) override {}
  DeviceKernels& kernels() override { return kernels_; }
  void end_call() override { std::ranges::move(kernels_.take(), std::back_inserter(calls_[name_])); }
  std::vector<CallTimes> finish() override { return std::vector<CallTimes>(enqueued_); }
  CallsByName take() { return std::move(calls_); }

 private:
  NotedKernels kernels_;
  CallsByName calls_;
  std::string name_;
  std::size_t enqueued_ = 0;
};

/// A kernel that a pass enqueues and the planner does not price.
struct Unlisted {
  Recompute rebuild;  ///< only then; kNothing: whatever is computed again
  const char* name;
  bool is_first;  ///< one, in front of all others; otherwise any
  const char* why;
};
constexpr Unlisted kUnlisted[] = {
    {Recompute::kNone, "balance_loss", false,
     "reads a router's probabilities once more: little beside what the router's own kernel moves, which is priced"},
    {Recompute::kNone, "add_excess_picks", false,
     "reads a router's picks once more, k numbers of a token beside the E that the router's own kernel moves"},
    {Recompute::kStage, "copy", true,
     "a stage whose input is all that is kept copies it apart in F, and back before it computes again; one of F's two "
     "copies is priced, that of what has come"},
};
void leave_out_unlisted(std::vector<NotedKernel>& calls, const RunSpec& spec, const Action& action) {
  for (const Unlisted& known : kUnlisted) {
    const auto is_known = [&](const NotedKernel& call) { return call.name == known.name; };
    if (known.rebuild != Recompute::kNone && known.rebuild != spec.rebuild) continue;
    if (!known.is_first) {
      std::erase_if(calls, is_known);
    } else if (action.stage > 0 && action.op != Op::kWeightGrad) {
      REQUIRE(is_known(calls.front()));
      calls.erase(calls.begin());
    }
  }
}

/// The kernels of one layer, in the order in which each pass runs them.
struct LayerKernels {
  std::vector<KernelCall> forward;
  std::vector<KernelCall> input_grad;
  std::vector<KernelCall> weight_grad;
  std::vector<KernelCall> rebuild_selective;
};

/// The lists of a stage's layers, put together as its calls are.
class StageLists {
 public:
  StageLists(const std::vector<Layer>& layers, const LayerWork& work, Recompute rebuild, bool is_first, bool is_last)
      : rebuild_(rebuild) {
    for (const Layer& layer : layers) {
      const LayerProgram program = fused_program(layer, work, rebuild == Recompute::kSelective);
      lists_.push_back({.forward = kernels_of(program, Pass::kForward),
                        .input_grad = kernels_of(program, Pass::kInputGrad),
                        .weight_grad = kernels_of(program, Pass::kWeightGrad),
                        .rebuild_selective =
                            recomputed_kernels(layer_program(layer, work, Machine::kDevice), Recompute::kSelective)});
    }
    if (!is_first) input_ = kernel_call(KernelKind::kCopy, {input_elements(layers.front(), work)});
    if (!is_last) output_gradient_ = kernel_call(KernelKind::kCopy, {output_elements(layers.back(), work)});
  }

  std::vector<NotedKernel> forward() {
    add(input_);
    whole();
    return std::move(calls_);
  }
  std::vector<NotedKernel> backward() {
    if (rebuild_ == Recompute::kStage) whole();
    for (std::size_t i = lists_.size(); i-- > 0;) {
      if (rebuild_ == Recompute::kSelective) add(lists_[i].rebuild_selective);
      if (i + 1 == lists_.size()) add(output_gradient_);
      add(lists_[i].input_grad);
      add(lists_[i].weight_grad);
    }
    return std::move(calls_);
  }
  std::vector<NotedKernel> input_grad() {
    if (rebuild_ == Recompute::kStage) whole();
    if (rebuild_ == Recompute::kSelective)
      for (const LayerKernels& layer : lists_) add(layer.rebuild_selective);
    add(output_gradient_);
    for (std::size_t i = lists_.size(); i-- > 0;) add(lists_[i].input_grad);
    return std::move(calls_);
  }
  std::vector<NotedKernel> weight_grad() {
    for (std::size_t i = lists_.size(); i-- > 0;) add(lists_[i].weight_grad);
    return std::move(calls_);
  }

 private:
  void whole() {
    for (const LayerKernels& layer : lists_) add(layer.forward);
  }
  void add(const std::optional<KernelCall>& call) {
    if (call) calls_.push_back(noted(*call));
  }
  void add(const std::vector<KernelCall>& calls) {
    for (const KernelCall& call : calls) calls_.push_back(noted(call));
  }

  Recompute rebuild_;
  std::vector<LayerKernels> lists_;
  std::optional<KernelCall> input_, output_gradient_;
  std::vector<NotedKernel> calls_;
};

std::vector<NotedKernel> listed_kernels(const RunSpec& spec, const Action& action) {
  const auto stage = static_cast<std::size_t>(action.stage);
  const LayerWork work{.microbatch = spec.microbatch, .sequence = spec.sequence};
  StageLists lists(spec.stage_layers[stage], work, spec.rebuild, stage == 0, stage + 1 == spec.stage_layers.size());
  if (action.op == Op::kForward) return lists.forward();
  if (action.op == Op::kBackward) return lists.backward();
  return action.op == Op::kInputGrad ? lists.input_grad() : lists.weight_grad();
}

bool is_pass(Op op) {
  return op == Op::kForward || op == Op::kBackward || op == Op::kInputGrad || op == Op::kWeightGrad;
}

/// Compares every pass of a step; how many there were.
int check_passes(RunSpec spec) {
  spec.steps = 1;
  ListingMachine machine(spec.half);
  run_device(spec, machine);
  CallsByName enqueued = machine.take();
  int passes = 0;
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions) {
      if (!is_pass(action.op)) continue;
      const std::string pass = to_text(action);
      CAPTURE(pass);
      std::vector<NotedKernel> own = enqueued[pass];
      leave_out_unlisted(own, spec, action);
      const std::vector<NotedKernel> expected = listed_kernels(spec, action);
      CHECK(own.size() == expected.size());
      for (std::size_t i = 0; i < std::min(own.size(), expected.size()); ++i) {
        CAPTURE(i);
        CHECK(own[i].name == expected[i].name);
        CHECK(own[i].elements == expected[i].elements);
        // GELU and ReLU of samples go by elements.
        if (!reads_samples(spec.stage_layers.front())) CHECK(own[i].shape == expected[i].shape);
      }
      ++passes;
    }
  return passes;
}

struct NamedModel {
  const char* name;
  std::vector<Layer> model;
};
std::vector<NamedModel> cases() {
  return {{"gpt", gpt_model(3)},
          {"gpt with dropout", with_dropout(gpt_model(2))},
          {"llama", llama_model(3)},
          {"mixtral", mixtral_model(3)},
          {"a shared expert", shared_expert_model(2)},
          {"mlp", mlp_model()},
          {"mamba2", mamba2_model()},
          {"sinks and biases", sink_model(2)},
          {"balanced picks", balanced_pick_model(2)},
          {"latent", latent_model()},
          {"norms of heads", with_head_norms(llama_model(2), QueryKeyNorms::kEachHead)}};
}

}  // namespace

TEST_CASE("a device enqueues the kernels that are priced, in their order, with their shapes and elements") {
  for (const NamedModel& of : cases())
    for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)})
      for (const Recompute rebuild : {Recompute::kNone, Recompute::kSelective, Recompute::kStage})
        for (const char* schedule : {"1f1b", "zb-h1"}) {
          CAPTURE(of.name);
          CAPTURE(half.has_value());
          CAPTURE(static_cast<int>(rebuild));
          CAPTURE(schedule);
          RunSpec spec = spec_of(of.model, make_schedule(schedule, {.ranks = 2, .microbatches = kListedMicrobatches}));
          spec.half = half;
          spec.rebuild = rebuild;
          CHECK(check_passes(spec) == 2 * kListedMicrobatches * (std::string(schedule) == "1f1b" ? 2 : 3));
        }
}

TEST_CASE("an exact GELU, parallel branches and a window are listed as they run") {
  std::vector<Layer> model = gpt_model(3);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->exact_gelu = true;
      block->parallel_residual = true;
      block->window = 3;
    }
  for (const Recompute rebuild : {Recompute::kNone, Recompute::kSelective}) {
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 2, .microbatches = kListedMicrobatches}));
    spec.rebuild = rebuild;
    check_passes(spec);
  }
}

}  // namespace plumb::test
