#pragma once
// Pipeline ranks that are meshes of different shape.

#include <string>
#include <vector>

#include "tests/executor/small_model.h"

namespace plumb::test {

inline constexpr StageMesh kAlone{}, kTensor2{.tensor = 2}, kData2{.data = 2}, kDataTensor{.data = 2, .tensor = 2},
    kTensor4{.tensor = 4}, kData4{.data = 4};

/// Returns a run over meshes: micro-batches of four sequences of eight tokens in `data` pipelines.
inline RunSpec over_meshes(const std::vector<Layer>& model, const std::string& schedule,
                           const std::vector<StageMesh>& meshes, const ScheduleParameters& request = {}, int data = 1,
                           int zero = 0) {
  ScheduleParameters wanted = request;
  wanted.ranks = static_cast<int>(meshes.size());
  wanted.microbatches = 4;
  LoweringOptions options{.data = {.enabled = true, .zero = zero}};
  RunSpec spec = spec_of_lowered(model, lower(make_schedule(schedule, wanted), options), data);
  spec.meshes = meshes;
  spec.microbatch = 4;
  spec.sequence = 8;
  spec.zero = zero;
  return spec;
}

}  // namespace plumb::test
