// Mixtures of experts on a device beside the cpu backend's.

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "executor/layers/device/expert_steps.h"
#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

/// DeepSeek's kind, its head with a table of its own.
std::vector<Layer> shared_experts(int blocks = 4) {
  return untied(shared_expert_model(blocks));
}

std::vector<Layer> with_capacity(std::vector<Layer> model, double factor) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr && block->experts > 0)
      block->capacity_factor = factor;
  return model;
}

RunSpec routing(const std::vector<Layer>& model, const char* name, int replicas = 1) {
  ScheduleParameters shape{.ranks = 2, .microbatches = 4};
  if (std::string_view(name) == "interleaved") shape.chunks = 2;
  RunSpec spec = spec_of(model, make_schedule(name, shape), replicas);
  spec.sequence = 8;
  spec.steps = 3;
  spec.optimizer = smooth_adamw();
  return spec;
}

/// Returns the spec with its sequences in slices.
RunSpec in_slices(RunSpec spec, const char* name, int slices) {
  const bool has_copies = spec.grid.data * spec.grid.context > 1;
  spec.schedule = lower(make_schedule(name, {.ranks = 2, .microbatches = 4, .slices = slices}),
                        {.data = {.enabled = has_copies, .zero = spec.zero}});
  return spec;
}

}  // namespace

TEST_CASE("experts on a device give the cpu's losses and gradients, with capacities, shared experts and dropout") {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved"})
    for (const std::vector<Layer>& model : {mixtral_model(), shared_experts(), with_dropout(shared_experts())}) {
      INFO(name);
      check_beside_cpu(routing(model, name));
    }
}

TEST_CASE("experts on a device have the same bits in any order that streams allow, and rebuilt, and as a graph") {
  for (const std::vector<Layer>& model : {mixtral_model(), shared_experts()}) {
    RunSpec spec = routing(model, "zb-h1");
    const RunResult kept = on_host(spec);
    CHECK(std::ranges::min(kept.balance_losses) > 0);
    for (const unsigned seed : {1U, 2U}) CHECK(on_host(spec, seed).weights == kept.weights);
    CHECK(on_host(routing(model, "1f1b")).weights == kept.weights);
    HostMachine keeping;
    keeping.keep_replay();
    CHECK(run_device(spec, keeping, {.capture_weights = true}).weights == kept.weights);
    for (const Recompute what : {Recompute::kSelective, Recompute::kStage}) {
      spec.rebuild = what;
      CHECK(on_host(spec).weights == kept.weights);
    }
  }
}

TEST_CASE("in 16 bits experts on a device follow the cpu, on tensor cores and beside them") {
  for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16})
    for (const std::vector<Layer>& model : {mixtral_model(), shared_experts()}) {
      RunSpec spec = routing(model, "1f1b");
      spec.half = half;
      check_beside_cpu(spec, 2e-2);
    }
}

TEST_CASE("experts whose channels tensor ranks share, and those of replicas, give the cpu's gradients") {
  RunSpec spec = routing(shared_experts(), "1f1b");
  spec.grid.tensor = 2;
  check_beside_cpu(spec);
  spec.clip_norm = 0.1F;  // a tensor rank's experts count, and what each has too counts once
  check_beside_cpu(spec);
  check_beside_cpu(routing(mixtral_model(), "1f1b", 2));
}

TEST_CASE("experts of tensor ranks that divide the rows between products give the cpu's gradients") {
  for (const std::vector<Layer>& model : {mixtral_model(), with_dropout(shared_experts())}) {
    RunSpec spec = routing(model, "zb-h1");
    spec.grid.tensor = 2;
    spec.sequence_parallel = true;
    check_beside_cpu(spec);
  }
}

TEST_CASE("experts take the first picks of sequences whose tokens context ranks have, as the cpu's") {
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const std::vector<Layer>& model : {mixtral_model(), shared_experts()}) {
      CAPTURE(static_cast<int>(attention));
      RunSpec spec = routing(model, "1f1b", 2);
      spec.grid.data = 1;
      spec.grid.context = 2;
      spec.context_attention = attention;
      check_beside_cpu(spec);
    }
}

TEST_CASE("experts on slices take the first picks of whole sequences, and balance those of all, as the cpu's") {
  for (const char* name : {"seq1f1b", "terapipe"})
    for (const std::vector<Layer>& model : {mixtral_model(), with_capacity(mixtral_model(), 0.5), shared_experts(),
                                            with_dropout(with_capacity(shared_experts(), 1))})
      for (const int slices : {2, 3}) {  // of 2 and 3 tokens the latter
        INFO(name);
        CAPTURE(slices);
        const RunSpec spec = in_slices(routing(model, "1f1b"), name, slices);
        check_beside_cpu(spec);
        check_any_order(spec, on_host(spec));
      }
  RunSpec whole = routing(with_capacity(shared_experts(), 0.5), "1f1b");
  whole.steps = 1;
  const RunResult of_slices = on_host(in_slices(whole, "seq1f1b", 3));
  const RunResult of_whole = on_host(whole);
  REQUIRE(of_slices.balance_losses.size() == of_whole.balance_losses.size());
  CHECK(std::ranges::min(of_whole.balance_losses) > 0);
  for (std::size_t i = 0; i < of_whole.balance_losses.size(); ++i)
    CHECK(of_slices.balance_losses[i] == doctest::Approx(of_whole.balance_losses[i]).epsilon(1e-6));
}

TEST_CASE("experts on slices go with every group of ranks, with sharding, in 16 bits and computed again") {
  const std::vector<Layer> model = with_capacity(shared_experts(), 1);
  for (const ContextAttention attention : {ContextAttention::kUlysses, ContextAttention::kRing})
    for (const int experts : {1, 2}) {
      CAPTURE(static_cast<int>(attention));
      RunSpec spec = routing(model, "1f1b", 2);
      spec.grid.data = 1;
      spec.grid.context = 2;
      spec.grid.expert = experts;
      spec.context_attention = attention;
      spec.sequence = 16;
      check_beside_cpu(in_slices(spec, "seq1f1b", 2));
    }
  for (const int zero : {0, 1, 3}) {
    CAPTURE(zero);
    RunSpec spec = routing(model, "1f1b", 2);
    spec.grid.tensor = zero == 1 ? 2 : 1;
    spec.grid.expert = 2;
    spec.zero = zero;
    spec.clip_norm = 0.1;
    spec.steps = 2;
    check_beside_cpu(in_slices(spec, "terapipe", zero == 1 ? 2 : 3));
  }
  RunSpec spec = in_slices(routing(model, "1f1b", 2), "seq1f1b", 2);
  spec.grid.expert = 2;
  const RunResult kept = on_host(spec);
  for (const Recompute rebuild : {Recompute::kStage, Recompute::kFull, Recompute::kSelective}) {
    spec.rebuild = rebuild;
    CHECK(on_host(spec, 3).weights == kept.weights);
  }
  RunSpec stored = in_slices(routing(model, "1f1b"), "seq1f1b", 2);
  stored.half = HalfFormat::kBf16;
  stored.steps = 1;
  check_beside_cpu(stored, 2e-2);
}

TEST_CASE("a device refuses routers with more picks than it can count") {
  std::vector<Layer> model = mixtral_model();
  std::get<TransformerLayer>(model[2]).experts = 64;
  std::get<TransformerLayer>(model[2]).experts_per_token = 33;
  CHECK_THROWS_WITH_AS(require_device_runnable(routing(model, "1f1b")), doctest::Contains("more than 32 experts"),
                       SpecError);
  RunSpec spec = routing(mixtral_model(), "1f1b");
  spec.microbatch = 1 << 20;
  CHECK_THROWS_WITH_AS(require_device_runnable(spec), doctest::Contains("2^24 picks"), SpecError);
}

TEST_CASE("a device refuses experts that not all tensor ranks share, which the cpu runs") {
  RunSpec spec = routing(mixtral_model(), "1f1b");
  spec.grid.tensor = 2;
  spec.grid.expert = 2;
  spec.grid.expert_tensor = 1;
  CHECK(run(spec).losses.size() == static_cast<std::size_t>(spec.steps));
  CHECK_THROWS_WITH_AS(require_device_runnable(spec), doctest::Contains("give etp the degree of tp"), SpecError);
  spec.grid.expert = 1;
  spec.grid.expert_tensor = 2;
  CHECK_NOTHROW(require_device_runnable(spec));
}

TEST_CASE("biases of routers and of experts give the cpu's losses and gradients, in every layout and any order") {
  const std::vector<Layer> model = sink_model(2);
  check_beside_cpu_in_any_order(routing(model, "zb-h1"));
  for (const bool divides_rows : {false, true}) {
    RunSpec spec = routing(model, "1f1b");
    spec.grid.tensor = 2;
    spec.sequence_parallel = divides_rows;
    check_beside_cpu(spec);
  }
  for (const int zero : {0, 2}) {
    RunSpec spec = routing(model, "1f1b", 2);
    spec.grid.expert = 2;
    spec.zero = zero;
    spec.schedule =
        lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}});
    check_beside_cpu(spec);
  }
  check_beside_cpu(in_slices(routing(model, "1f1b"), "seq1f1b", 2));
}

TEST_CASE("sigmoid routers pick, weigh and balance as the cpu's, in every layout and any order") {
  const std::vector<Layer> model = balanced_pick_model(2);
  check_beside_cpu_in_any_order(routing(model, "zb-h1"));
  RunSpec spec = routing(model, "1f1b");
  spec.grid.tensor = 2;
  spec.clip_norm = 0.1F;  // excesses of picks are no part of the norm
  check_beside_cpu(spec);
  for (const int zero : {0, 2}) {
    CAPTURE(zero);
    RunSpec of_replicas = routing(model, "1f1b", 2);
    of_replicas.grid.expert = 2;
    of_replicas.zero = zero;
    of_replicas.schedule =
        lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}});
    check_beside_cpu(of_replicas);
  }
  check_beside_cpu(in_slices(routing(model, "1f1b"), "seq1f1b", 2));
  RunSpec shared = routing(model, "1f1b", 2);
  shared.grid.data = 1;
  shared.grid.context = 2;
  check_beside_cpu(shared);
}

TEST_CASE("biases of picks move with every optimizer, on the host too, and in 16 bits") {
  const std::vector<Layer> model = balanced_pick_model(2);
  for (const OptimizerSettings& optimizer :
       std::vector<OptimizerSettings>{smooth_adamw(), AdamW8Bit{}, Sgd{}, Adafactor{}}) {
    RunSpec spec = routing(model, "1f1b");
    spec.optimizer = optimizer;
    spec.steps = 2;
    const RunResult device = on_host(spec);
    check_losses(device, run(spec), 1e-4);
    spec.offload_optimizer = true;
    CHECK(on_host(spec).weights == device.weights);
  }
  RunSpec spec = routing(model, "1f1b");
  for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    spec.half = half;
    check_beside_cpu(spec, 2e-2);
  }
  const RunResult device = on_host(spec);
  spec.offload_optimizer = true;
  CHECK(on_host(spec).weights == device.weights);
}

TEST_CASE("biases of experts are updated as vectors, in 16 bits with an optimizer on the host, and by Adafactor") {
  const std::vector<Layer> model = sink_model(2);
  RunSpec spec = routing(model, "1f1b");
  spec.half = HalfFormat::kBf16;
  check_beside_cpu(spec, 2e-2);
  const RunResult on_device = on_host(spec);
  spec.offload_optimizer = true;
  CHECK(on_host(spec).weights == on_device.weights);
  RunSpec factored = routing(model, "1f1b");
  factored.optimizer = Adafactor{.learning_rate = 1e-2F};
  check_beside_cpu(factored);
}

}  // namespace plumb::test
