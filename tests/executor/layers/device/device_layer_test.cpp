// Layers on a device beside the cpu backend's: those on images and on vectors of numbers, and decoder blocks whose
// branches both read the block's input (GPT-NeoX, Falcon).

#include "executor/layers/device/device_layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec learning(const std::vector<Layer>& model, std::string_view name, int replicas = 1, int ranks = 2) {
  ScheduleParameters shape{.ranks = ranks, .microbatches = 4};
  if (name == "interleaved") shape.chunks = 2;
  RunSpec spec = spec_of(model, make_schedule(name, shape), replicas);
  spec.microbatch = 3;
  spec.steps = 3;
  spec.optimizer = smooth_adamw();
  return spec;
}

RunSpec branching(const std::vector<Layer>& model, const char* name) {
  RunSpec spec = spec_of(with_parallel_residuals(model), make_schedule(name, {.ranks = 2, .microbatches = 4}));
  spec.sequence = 8;
  spec.steps = 2;
  spec.optimizer = smooth_adamw();
  return spec;
}

/// Windows of one pixel, and patches of more images than one product takes.
std::vector<Layer> wide_images() {
  return {InputLayer{.height = 64, .width = 64, .channels = 2},
          ConvolutionLayer{.height = 64, .width = 64, .channels = 2, .filters = 9, .kernel = 1, .input_grad = false},
          ConvolutionLayer{
              .height = 64, .width = 64, .channels = 9, .filters = 2, .kernel = 9, .padding = 4, .relu = false},
          PoolingLayer{.height = 64, .width = 64, .channels = 2, .kernel = 32, .stride = 32},
          ConvolutionLayer{.height = 2, .width = 2, .channels = 2, .filters = 3, .kernel = 1},
          LinearLayer{.in = 12, .out = 3},
          LossLayer{.width = 3}};
}

}  // namespace

TEST_CASE("images and vectors on a device give the cpu's losses and gradients") {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved"})
    for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
      INFO(name);
      check_beside_cpu(learning(model, name));
    }
}

TEST_CASE("a device convolves windows of one pixel, and images in more than one product") {
  RunSpec spec = learning(wide_images(), "1f1b");
  spec.steps = 2;
  check_beside_cpu(spec);
}

TEST_CASE("on a device images have the same bits in any order that streams allow, and rebuilt, and as a graph") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
    RunSpec spec = learning(model, "zb-h1", 1, 3);
    const RunResult kept = on_host(spec);
    for (const unsigned seed : {1U, 2U}) CHECK(on_host(spec, seed).weights == kept.weights);
    HostMachine keeping;
    keeping.keep_replay();
    CHECK(run_device(spec, keeping, {.capture_weights = true}).weights == kept.weights);
    for (const char* name : {"zb-h1", "1f1b"})
      for (const Recompute what : {Recompute::kSelective, Recompute::kFull, Recompute::kStage}) {
        RunSpec again = learning(model, name, 1, 3);
        again.rebuild = what;
        const RunResult rebuilt = on_host(again, 5);
        CHECK(rebuilt.losses == kept.losses);
        CHECK(rebuilt.weights == kept.weights);
      }
  }
}

TEST_CASE("on a device every synchronous schedule gives the gradients of images of every other on the same split") {
  RunSpec alone = learning(cnn_model(), "naive", 1, 1);
  alone.steps = 1;
  const ModelValues reference = on_host(alone).gradients.at(0);
  int compared = 0, bitwise = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;  // it has no gradients
    RunSpec spec;
    try {
      spec = learning(cnn_model(), entry.name);
      require_device_runnable(spec);
    } catch (const InputError&) {
      continue;
    }
    if (is_asynchronous(spec.schedule)) continue;
    CAPTURE(entry.name);
    spec.steps = 1;
    const double worst = worst_difference(on_host(spec).gradients.at(0), reference);
    CHECK(worst < 1e-5);
    ++compared;
    const bool copies = has_copies(spec.schedule);  // which add by themselves
    if (copies || !adds_in_ascending_order(spec.schedule)) continue;
    CHECK(worst == 0);
    ++bitwise;
  }
  CHECK(compared >= 10);
  CHECK(bitwise >= 5);
}

TEST_CASE("in 16 bits images on a device follow the cpu") {
  for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16})
    for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
      RunSpec spec = learning(model, "1f1b");
      spec.half = half;
      check_beside_cpu(spec, 2e-2);
    }
}

TEST_CASE("images whose gradients replicas sum and share out, and clipped, give the cpu's") {
  for (const int zero : {0, 1, 2, 3}) {
    RunSpec spec = learning(cnn_model(), "1f1b", 2);
    if (zero > 0)
      spec = spec_of_lowered(
          cnn_model(),
          lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}}), 2);
    spec.zero = zero;
    spec.clip_norm = 0.1F;
    spec.optimizer = smooth_adamw();
    spec.steps = 2;
    INFO(zero);
    check_beside_cpu(spec);
  }
}

TEST_CASE("parallel residuals on a device give the cpu's losses and gradients, with dropout and experts too") {
  for (const std::vector<Layer>& model :
       {untied_gpt_model(), llama_model(), with_dropout(untied_gpt_model()), mixtral_model()})
    for (const char* name : {"1f1b", "zb-h1"}) check_beside_cpu(branching(model, name));
  RunSpec spec = branching(untied_gpt_model(), "1f1b");
  spec.half = HalfFormat::kBf16;
  check_beside_cpu(spec, 2e-2);
}

TEST_CASE("tensor ranks with parallel residuals give the cpu's gradients, with their rows divided and without") {
  for (const bool sequence_parallel : {false, true}) {
    RunSpec spec = branching(untied_gpt_model(), "1f1b");
    spec.grid.tensor = 2;
    spec.sequence_parallel = sequence_parallel;
    check_beside_cpu(spec);
  }
}

TEST_CASE("parallel residuals have the same bits in any order that streams allow, and rebuilt") {
  RunSpec spec = branching(llama_model(), "zb-h1");
  const RunResult kept = on_host(spec);
  CHECK(on_host(spec, 3).weights == kept.weights);
  CHECK(on_host(branching(llama_model(), "gpipe")).weights == kept.weights);
  for (const Recompute what : {Recompute::kSelective, Recompute::kFull, Recompute::kStage}) {
    spec.rebuild = what;
    CHECK(on_host(spec).weights == kept.weights);
  }
}

TEST_CASE("a device keeps no pooling's input from a forward to its backward") {
  const PoolingLayer pooling{.height = 9, .width = 7, .channels = 8, .kernel = 3, .stride = 2};
  const LayerWork work{.microbatch = 5};
  const DeviceLayer layer(pooling, work, 4);
  const DeviceLayerBytes& bytes = layer.bytes();
  CHECK(bytes.late == 0);
  CHECK(bytes.early == aligned_bytes(output_elements(pooling, work) * 4));
  CHECK(bytes.passing == aligned_bytes(input_elements(pooling, work) * 4));
}

}  // namespace plumb::test
