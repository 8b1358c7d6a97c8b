#include "planner/spec/assumed_stack.h"

#include <algorithm>

namespace plumb { inline namespace planner {

std::optional<AssumedStack> assumed_stack(const ModelSpec& model, const ClusterSpec& cluster, const Layout& layout) {
  const auto has = [&](Precision precision) {
    const auto lists = [&](const ClusterSpec& site) { return site.device.peak_flops_per_second.contains(precision); };
    return lists(cluster) && std::ranges::all_of(cluster.further_sites, lists);
  };
  const auto is_measured = [](const ClusterSpec& site) { return !site.samples.empty(); };
  const bool measured = is_measured(cluster) || std::ranges::any_of(cluster.further_sites, is_measured);
  const bool has_bf16 = has(Precision::kBf16);
  if (model.graph || measured || !(has_bf16 || has(Precision::kFp16))) return std::nullopt;
  if (!has_bf16) return AssumedStack{"megatron-lm-2021", "the device has no bf16, as those before Ampere"};
  if (layout.zero == 3 && layout.pipeline == 1 && model.experts == 0) {
    return AssumedStack{"torchtitan", "parameters are sharded, and stages are not divided"};
  }
  if (!has(Precision::kFp8)) return AssumedStack{"megatron-core", "the device has bf16 and no fp8, as Ampere"};
  if (model.experts > 0) return AssumedStack{"nemo-moe", "a mixture of experts on a device with fp8"};
  return AssumedStack{"nemo", "a device with fp8, as Hopper and later"};
}

}}  // namespace plumb::planner
