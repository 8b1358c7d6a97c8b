#pragma once
// The purposes of a rank's bytes.

#include <array>
#include <cstdint>
#include <string_view>

namespace plumb { inline namespace traces {

enum class MemoryKind : std::uint8_t {
  kParameters,      ///< one version of the weights
  kGradients,       ///< accumulated weight gradients
  kOptimizer,       ///< moments and master weights
  kWeightVersions,  ///< further versions of the weights (asynchronous schedules)
  kUnsharded,       ///< gathered parameters, from UNSHARD to RESHARD
  kActivations,     ///< activations that F keeps for the backward
  kRecompute,       ///< activations that R or the backward rebuilds
  kWorkspace,       ///< workspace of a running F, R, B, I or W
  kCommunication,   ///< received messages, from the issue of their RECV until their consumer starts
};
inline constexpr int kMemoryKindCount = 9;

using BytesByKind = std::array<std::int64_t, kMemoryKindCount>;  ///< [kind]

/// Returns "parameters", "gradients", "optimizer", "weight versions", "unsharded", "activations", "recompute",
/// "workspace" or "communication".
std::string_view memory_kind_name(MemoryKind kind);

}}  // namespace plumb::traces
