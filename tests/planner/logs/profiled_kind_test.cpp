#include "planner/logs/profiled_kind.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("kernels are told by their names") {
  CHECK(profiled_kind("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "") == ProfiledKind::kGemm);
  CHECK(profiled_kind("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTT", "") == ProfiledKind::kGemm);
  CHECK(profiled_kind("void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>", "") == ProfiledKind::kAttention);
  CHECK(profiled_kind("void at::native::multi_tensor_apply_kernel<FusedAdam>", "") == ProfiledKind::kOptimizer);
  CHECK(profiled_kind("void at::native::vectorized_elementwise_kernel<4>", "") == ProfiledKind::kMemoryBound);
  CHECK(profiled_kind("Memcpy DtoD (Device -> Device)", "") == ProfiledKind::kCopy);
}

TEST_CASE("collectives are told by their groups, of replicas first") {
  const auto of = [](const char* group) { return profiled_kind("ncclDevKernel_AllGather_RING_LL(...)", group); };
  CHECK(of("TENSOR_MODEL_PARALLEL_GROUP") == ProfiledKind::kTensorParallel);
  CHECK(of("mesh_tp") == ProfiledKind::kTensorParallel);
  CHECK(of("DATA_PARALLEL_GROUP_WITH_CP") == ProfiledKind::kDataParallel);
  CHECK(of("EXPERT_DATA_PARALLEL_GROUP") == ProfiledKind::kDataParallel);
  CHECK(of("mesh_dp_shard_cp") == ProfiledKind::kDataParallel);
  CHECK(of("EXPERT_MODEL_PARALLEL_GROUP") == ProfiledKind::kContextAndExpert);
  CHECK(of("mesh_cp") == ProfiledKind::kContextAndExpert);
  CHECK(of("PIPELINE_MODEL_PARALLEL_GROUP") == ProfiledKind::kPipeline);
  CHECK(of("mesh_pp") == ProfiledKind::kPipeline);
  CHECK(of("default_pg") == ProfiledKind::kUnknownGroup);
}

}  // namespace plumb::test
