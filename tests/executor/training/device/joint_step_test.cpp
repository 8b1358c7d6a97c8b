// Joint steps of ranks on a device, beside the cpu backend: the norm of all gradients, overflows of
// fp16, a table that embedding and head share; over stages, replicas, shares of ZeRO and tensor ranks.

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

RunSpec divided(const std::vector<Layer>& model, const std::string& name, int ranks, int replicas, int tensor,
                int zero) {
  const Schedule order = make_schedule(name, {.ranks = ranks, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = replicas > 1, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.grid.tensor = tensor;
  spec.steps = 2;
  return spec;
}

const std::vector<std::tuple<const char*, int, int, int, int>> kLayouts = {
    {"1f1b", 2, 2, 1, 0},        {"1f1b", 2, 2, 1, 1}, {"zb-h1", 2, 3, 1, 2},
    {"gpipe", 2, 2, 1, 3},       {"1f1b", 2, 1, 2, 0}, {"1f1b", 1, 2, 2, 0},
    {"interleaved", 2, 2, 1, 0}, {"zb-v", 2, 2, 1, 2}, {"1f1b", 2, 2, 2, 3}};

}  // namespace

TEST_CASE("a device clips by the norm of all stages, replicas, shares and tensor ranks as the CPU does") {
  for (const auto& [name, ranks, replicas, tensor, zero] : kLayouts) {
    CAPTURE(name);
    CAPTURE(tensor);
    CAPTURE(zero);
    RunSpec spec = divided(untied_gpt_model(), name, ranks, replicas, tensor, zero);
    spec.clip_norm = 0.05;
    const RunResult clipped = check_shares_beside_cpu(spec);
    if (zero > 0) continue;
    spec.clip_norm = 0;
    CHECK(worst_difference(on_host(spec).gradients[0], clipped.gradients[0]) > 0.1);  // it does clip
  }
}

TEST_CASE("both ends of a tied table get the sum of their gradients over all copies, and it counts once in the norm") {
  for (const auto& [name, ranks, replicas, tensor, zero] : kLayouts)
    for (const double clip : {0.0, 0.05}) {
      CAPTURE(name);
      CAPTURE(tensor);
      CAPTURE(zero);
      CAPTURE(clip);
      RunSpec spec = divided(gpt_model(), name, ranks, replicas, tensor, zero);
      spec.clip_norm = clip;
      const RunResult device = check_shares_beside_cpu(spec);
      CHECK(device.weights.front().front() == device.weights.back().back());  // the ends stay the same
      if (zero == 0 || tensor > 1) continue;
      spec.shard_by = ShardBy::kLayer;
      check_shares_beside_cpu(spec);
    }
}

TEST_CASE("in fp16 all ranks of a device skip the steps that overflow anywhere, as the CPU's") {
  for (const auto& [name, ranks, replicas, tensor, zero] : kLayouts) {
    CAPTURE(name);
    CAPTURE(tensor);
    CAPTURE(zero);
    RunSpec spec = divided(tied_llama_model(), name, ranks, replicas, tensor, zero);
    spec.steps = 4;
    spec.half = HalfFormat::kFp16;
    const RunResult cpu = run(spec), device = on_host(spec);
    CHECK(device.loss_scales == cpu.loss_scales);
    CHECK(device.skipped_steps == cpu.skipped_steps);
    check_losses(device, cpu, 2e-3);
    CHECK(on_host(spec, 5).losses == device.losses);
  }
}

TEST_CASE("a device says how much it allocates for what ranks agree on") {
  RunSpec spec = divided(gpt_model(), "1f1b", 2, 2, 2, 2);
  spec.clip_norm = 1;
  HostMachine machine;
  const RunResult result = run_device(spec, machine);
  std::int64_t said = 0;
  for (const std::int64_t bytes : result.peak_memory_bytes) said += bytes;
  CHECK(4 * said == machine.allocated());  // of each pipeline rank
}

}  // namespace plumb::test
