// Meshes of different shape on a device, beside the cpu backend.

#include "executor/device/run_device.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/run.h"
#include "tests/executor/device/host_run.h"

namespace plumb::test {
namespace {

constexpr StageMesh kAlone{}, kTensor2{.tensor = 2}, kData2{.data = 2}, kBoth{.data = 2, .tensor = 2};

RunSpec over(const std::vector<Layer>& model, const std::string& name, const std::vector<StageMesh>& meshes, int data,
             int zero) {
  const int ranks = static_cast<int>(meshes.size());
  RunSpec spec = spec_of_lowered(
      model, lower(make_schedule(name, {.ranks = ranks, .microbatches = 4}), {.data = {.enabled = true, .zero = zero}}),
      data);
  spec.meshes = meshes;
  spec.microbatch = 4;
  spec.sequence = 8;
  spec.zero = zero;
  spec.steps = 2;
  return spec;
}

}  // namespace

TEST_CASE("stages on meshes of different shape hand tensors over on a device as on the CPU, in all three ways") {
  for (const auto& meshes : {std::vector{kTensor2, kData2}, std::vector{kData2, kTensor2}, std::vector{kAlone, kBoth},
                             std::vector{kBoth, kAlone}})
    for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
      for (const bool divides_rows : {false, true}) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(divides_rows);
        RunSpec spec = over(untied_gpt_model(), divides_rows ? "zb-h1" : "1f1b", meshes, 1, 0);
        spec.resharding = kind;
        spec.sequence_parallel = divides_rows;
        check_shares_beside_cpu(spec);
      }
}

TEST_CASE("with tied tables over both meshes, several pipelines, ZeRO and 16 bits too") {
  for (const int zero : {0, 1, 2}) {
    CAPTURE(zero);
    check_shares_beside_cpu(over(gpt_model(), "1f1b", {kTensor2, kData2}, 1, zero));
  }
  RunSpec spec = over(gpt_model(), "interleaved", {kData2, kTensor2}, 1, 0);
  spec.clip_norm = 0.5;
  check_shares_beside_cpu(spec);
  check_shares_beside_cpu(over(llama_model(), "1f1b", {kBoth, StageMesh{.data = 4}}, 2, 3));
  spec = over(llama_model(), "1f1b", {kTensor2, kData2}, 1, 3);
  spec.layerwise = true;
  check_shares_beside_cpu(spec);
  spec.half = HalfFormat::kBf16;
  check_shares_beside_cpu(spec);
}

}  // namespace plumb::test
