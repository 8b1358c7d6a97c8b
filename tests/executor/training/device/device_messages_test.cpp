// Meshes of different shape on a device, beside the cpu backend.

#include "executor/training/device/run_device.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "tests/executor/meshes.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec two_steps_over(const std::vector<Layer>& model, const std::string& name, const std::vector<StageMesh>& meshes,
                       int data, int zero) {
  RunSpec spec = over_meshes(model, name, meshes, {}, data, zero);
  spec.steps = 2;
  return spec;
}

}  // namespace

TEST_CASE("stages on meshes of different shape hand tensors over on a device as on the CPU, in all three ways") {
  for (const auto& meshes : {std::vector{kTensor2, kData2}, std::vector{kData2, kTensor2},
                             std::vector{kAlone, kDataTensor}, std::vector{kDataTensor, kAlone}})
    for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast})
      for (const bool divides_rows : {false, true}) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(divides_rows);
        RunSpec spec = two_steps_over(untied_gpt_model(), divides_rows ? "zb-h1" : "1f1b", meshes, 1, 0);
        spec.resharding = kind;
        spec.sequence_parallel = divides_rows;
        check_shares_beside_cpu(spec);
      }
}

TEST_CASE("with tied tables over both meshes, several pipelines, ZeRO and 16 bits too") {
  for (const int zero : {0, 1, 2}) {
    CAPTURE(zero);
    check_shares_beside_cpu(two_steps_over(gpt_model(), "1f1b", {kTensor2, kData2}, 1, zero));
  }
  RunSpec spec = two_steps_over(gpt_model(), "interleaved", {kData2, kTensor2}, 1, 0);
  spec.clip_norm = 0.5;
  check_shares_beside_cpu(spec);
  check_shares_beside_cpu(two_steps_over(llama_model(), "1f1b", {kDataTensor, StageMesh{.data = 4}}, 2, 3));
  spec = two_steps_over(llama_model(), "1f1b", {kTensor2, kData2}, 1, 3);
  spec.layerwise = true;
  check_shares_beside_cpu(spec);
  spec.half = HalfFormat::kBf16;
  check_shares_beside_cpu(spec);
}

}  // namespace plumb::test
