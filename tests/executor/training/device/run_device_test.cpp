#include "executor/training/device/run_device.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {

TEST_CASE("a device computes the CPU's losses, gradients and weights") {
  for (const std::vector<Layer>& model : {llama_model(), untied_gpt_model()}) {
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
    spec.steps = 3;
    const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
    check_losses(device, cpu, 1e-6);
    CHECK(worst_difference(device.gradients[0], cpu.gradients[0]) < 1e-5);
    // Afterwards a gradient next to 0 decides which way AdamW steps.
    for (std::size_t i = 1; i < cpu.gradients.size(); ++i)
      CHECK(worst_difference(device.gradients[i], cpu.gradients[i]) < 1e-2);
    CHECK(device.parameter_bytes == cpu.parameter_bytes);
  }
}

TEST_CASE("in bf16 a device's losses follow the CPU's in fp32, with attention on tensor cores and without") {
  for (const std::vector<Layer>& model : {llama_model(), untied_gpt_model()}) {  // heads of 4 channels, and of 8
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
    spec.steps = 8;
    const std::vector<double> exact = run(spec).losses;
    spec.half = HalfFormat::kBf16;
    const std::vector<double> losses = on_host(spec).losses;
    REQUIRE(losses.size() == exact.size());
    CHECK(losses != exact);
    for (std::size_t i = 0; i < exact.size(); ++i) CHECK(losses[i] == doctest::Approx(exact[i]).epsilon(2e-2));
  }
}

TEST_CASE("a device clips by the global norm as the CPU does, in every order that streams and events allow") {
  for (const char* name : {"1f1b", "zb-v"}) {
    RunSpec spec = spec_of(llama_model(), make_schedule(name, {.ranks = 3, .microbatches = 6}));
    spec.steps = 2;
    spec.clip_norm = 0.05;
    const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
    for (std::size_t i = 0; i < cpu.losses.size(); ++i)
      CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-6));
    CHECK(worst_difference(device.gradients[0], cpu.gradients[0]) < 1e-5);
    spec.clip_norm = 0;
    CHECK(worst_difference(on_host(spec).gradients[0], cpu.gradients[0]) > 0.1);  // it does clip
    spec.clip_norm = 0.05;
    for (unsigned seed = 1; seed <= 5; ++seed) {
      HostMachine machine({}, seed);
      const RunResult result = run_device(spec, machine, {.capture_weights = true});
      CHECK(result.losses == device.losses);
      CHECK(result.weights == device.weights);
    }
  }
}

TEST_CASE("in fp16 a device scales the loss, skips the steps that overflow and follows the CPU") {
  RunSpec spec = spec_of(untied_gpt_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  spec.steps = 8;
  const std::vector<double> exact = run(spec).losses;
  spec.half = HalfFormat::kFp16;
  const RunResult cpu = run(spec), device = on_host(spec);
  CHECK(device.loss_scales == cpu.loss_scales);
  CHECK(device.skipped_steps == cpu.skipped_steps);
  check_losses(device, cpu, 2e-3);
}

TEST_CASE(
    "a table that embedding and head share gets both ends' gradients on a device, and counts once where they clip") {
  for (const int ranks : {1, 3})
    for (const double clip : {0.0, 0.05}) {
      RunSpec spec = spec_of(gpt_model(), make_schedule("1f1b", {.ranks = ranks, .microbatches = 4}));
      spec.steps = 2;
      spec.clip_norm = clip;
      const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
      for (std::size_t i = 0; i < cpu.losses.size(); ++i)
        CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-6));
      CHECK(device.weights.front().front() == device.weights.back().back());  // the ends stay the same
      HostMachine machine({}, 7);
      CHECK(run_device(spec, machine, {.capture_weights = true}).weights == device.weights);
    }
}

TEST_CASE("a stage that a device recomputes has the same bits, in less memory") {
  for (const char* name : {"1f1b", "zb-h1", "gpipe"})
    for (const bool with_r : {false, true}) {
      INFO(name << (with_r ? " with R" : " without R"));
      const ScheduleParameters parameters{.ranks = 3, .microbatches = 6};
      RunSpec kept = spec_of(llama_model(), make_schedule(name, parameters));
      kept.steps = 2;
      RunSpec spec = kept;
      spec.rebuild = Recompute::kStage;
      if (with_r) spec.schedule = lower(make_schedule(name, parameters), {.checkpoint = Checkpoint::kAlways});
      const RunResult all = on_host(kept), recomputed = on_host(spec);
      CHECK(recomputed.losses == all.losses);
      CHECK(recomputed.weights == all.weights);
      CHECK(recomputed.peak_memory_bytes.front() < all.peak_memory_bytes.front());
      HostMachine machine({}, 3);
      CHECK(run_device(spec, machine, {.capture_weights = true}).weights == all.weights);
    }
}

TEST_CASE("on a device weight decay spares vectors, as on the CPU") {
  RunSpec spec = spec_of(untied_gpt_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 4}));
  spec.steps = 1;
  std::get<AdamW>(spec.optimizer).weight_decay = 10;  // 1 % of a weight a step: a gain that decays is 0.01 off
  const RunResult cpu = run(spec, {.capture_weights = true}), device = on_host(spec);
  const std::vector<std::vector<float>>&own = device.weights.at(1), &expected = cpu.weights.at(1);
  REQUIRE(own.size() == expected.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t k = 0; k < own[i].size(); ++k)
      CHECK(std::abs(own[i][k] - expected[i][k]) < 2.1e-3F);  // a gradient next to 0 may step the other way
}

TEST_CASE("on a device every synchronous schedule gives the gradients of every other on the same split") {
  int compared = 0, bitwise = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    ScheduleParameters parameters{.ranks = 2, .microbatches = 4};
    if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;  // it has no gradients
    if (entry.takes_chunks) parameters.chunks = 2;
    RunSpec spec;
    try {
      spec = spec_of(llama_model(), make_schedule(entry.name, parameters));
      require_device_runnable(spec);
    } catch (const InputError&) {
      continue;
    }
    if (is_asynchronous(spec.schedule)) continue;
    INFO(entry.name);
    RunSpec alone = spec_of(llama_model(), make_schedule("naive", {.ranks = 1, .microbatches = 4}));
    spec.steps = alone.steps = 1;
    const ModelValues own = on_host(spec).gradients.at(0), reference = on_host(alone).gradients.at(0);
    const double worst = worst_difference(own, reference);
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

TEST_CASE("a device computes the same bits in every order that its streams and events allow") {
  for (const char* name : {"1f1b", "zb-h1", "interleaved", "zb-v", "gpipe"}) {
    INFO(name);
    ScheduleParameters parameters{.ranks = 3, .microbatches = 6};
    if (std::string_view(name) == "interleaved") parameters.chunks = 2;
    RunSpec spec = spec_of(llama_model(), make_schedule(name, parameters));
    spec.steps = 2;
    const RunResult expected = on_host(spec);
    for (unsigned seed = 1; seed <= 5; ++seed) {
      HostMachine machine({}, seed);
      const RunResult result = run_device(spec, machine, {.capture_weights = true});
      CHECK(result.losses == expected.losses);
      CHECK(result.weights == expected.weights);
    }
  }
}

TEST_CASE("a device's replay can be kept and done again: steps differ in nothing but memory") {
  RunSpec spec = spec_of(llama_model(), make_schedule("zb-h1", {.ranks = 3, .microbatches = 6}));
  spec.steps = 4;
  const RunResult expected = on_host(spec);
  HostMachine machine;
  machine.keep_replay();
  const RunResult result = run_device(spec, machine, {.capture_gradients = true, .capture_weights = true});
  CHECK(result.losses == expected.losses);
  CHECK(result.weights == expected.weights);
  CHECK(result.gradients == expected.gradients);
}

TEST_CASE("a device allocates before the first step and no more, and as much as it says") {
  RunSpec spec = spec_of(llama_model(), make_schedule("zb-h1", {.ranks = 3, .microbatches = 6}));
  spec.steps = 1;
  HostMachine once;
  const RunResult result = run_device(spec, once);
  spec.steps = 4;
  HostMachine more;
  run_device(spec, more);
  CHECK(more.allocations() == once.allocations());
  CHECK(more.allocated() == once.allocated());
  std::int64_t said = 0;
  for (const std::int64_t bytes : result.peak_memory_bytes) said += bytes;
  CHECK(said == once.allocated());
}

TEST_CASE("a device's timeline has every action of the schedule, and its order") {
  RunSpec spec = spec_of(llama_model(), make_schedule("zb-h1", {.ranks = 2, .microbatches = 4}));
  spec.steps = 2;
  const RunResult result = on_host(spec);
  REQUIRE(result.timelines.size() == 2);
  const Timeline& timeline = result.timelines.back();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::vector<Span>& spans = timeline.ranks[rank].spans;
    REQUIRE(spans.size() == spec.schedule.ranks[rank].size());
    SimTime before{0};
    for (std::size_t i = 0; i < spans.size(); ++i) {
      CHECK(spans[i].action == spec.schedule.ranks[rank][i]);
      CHECK(spans[i].end >= spans[i].start);
      if (!is_compute(spans[i].action.op)) continue;
      CHECK(spans[i].start >= before);
      before = spans[i].end;
    }
  }
}

TEST_CASE("memory that a device has not is named by kind before the first step") {
  const RunSpec spec = spec_of(llama_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 4}));
  HostMachine machine({}, {}, 300'000);
  std::string said;
  try {
    run_device(spec, machine);
  } catch (const RunError& error) {
    said = error.what();
  }
  CHECK(said.find("of weights, gradients and optimizer state") != std::string::npos);
  CHECK(said.find("of activations, messages and workspace") != std::string::npos);
  CHECK(machine.allocations() == 0);
}

TEST_CASE("what a device does not run is refused by name") {
  const auto refused = [](const RunSpec& spec, const std::string& what) {
    INFO(what);
    std::string said;
    try {
      require_device_runnable(spec);
    } catch (const SpecError& error) {
      said = error.what();
    }
    CHECK(said.find(what) != std::string::npos);
  };
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  const RunSpec good = spec_of(llama_model(), order);
  CHECK_NOTHROW(require_device_runnable(good));
  CHECK_NOTHROW(require_device_runnable(spec_of(mixtral_model(), order)));
  CHECK_NOTHROW(require_device_runnable(spec_of(cnn_model(), order)));
  CHECK_NOTHROW(require_device_runnable(spec_of(llama_model(), order, 2)));
  CHECK_NOTHROW(require_device_runnable(spec_of(gpt_model(), order, 2)));
  RunSpec bad = spec_of(llama_model(), make_schedule("chimera", {.ranks = 2, .microbatches = 4}));
  CHECK_NOTHROW(require_device_runnable(bad));
  bad.zero = 3;
  bad.layerwise = true;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = spec_of(llama_model(), order, 2);
  bad.clip_norm = 1;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = good;
  bad.grid.context = 2;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad.stage_layers = spec_of(mixtral_model(), order).stage_layers;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = spec_of(mixtral_model(), order, 2);
  bad.grid.expert = 2;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = good;
  bad.grid.tensor = 2;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad.sequence_parallel = true;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = good;
  bad.optimizer = AdamW8Bit{};
  bad.offload_optimizer = true;
  CHECK_NOTHROW(require_device_runnable(bad));
  bad = good;
  std::get<TransformerLayer>(bad.stage_layers.front().back()).head_size = 264;
  refused(bad, "heads of more than 256 channels");
}

}  // namespace plumb::test
