#pragma once
// The kernels of a profile by what they do. Their names tell it, and for a collective its process group does.

#include <cstdint>
#include <string_view>

namespace plumb { inline namespace planner {

/// In the order in which simultaneous kernels count: an exchange counts only where nothing computes.
enum class ProfiledKind : std::uint8_t {
  kGemm,
  kAttention,
  kOptimizer,
  kMemoryBound,       ///< all other kernels that compute
  kTensorParallel,    ///< collectives of tensor groups
  kContextAndExpert,  ///< collectives of context and expert groups
  kDataParallel,      ///< collectives of replicas and shards
  kPipeline,          ///< messages between stages
  kUnknownGroup,      ///< collectives whose group has no name
  kCopy,              ///< copies and fills of memory
};
inline constexpr int kProfiledKindCount = 10;

/// Returns the kind of a kernel. `group` is its "Process Group Description" in PyTorch's profiles, as
/// TENSOR_MODEL_PARALLEL_GROUP (Megatron-Core) or mesh_dp_shard (DeviceMesh); empty: it has none.
ProfiledKind profiled_kind(std::string_view kernel, std::string_view group);

}}  // namespace plumb::planner
