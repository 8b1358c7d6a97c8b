#pragma once
// What a rank's bytes are for.

#include <array>
#include <cstdint>
#include <string_view>

namespace plumb { inline namespace traces {

enum class MemoryKind : std::uint8_t {
  kParameters,      ///< one version of the weights
  kGradients,       ///< accumulated weight gradients
  kOptimizer,       ///< moments and master weights
  kWeightVersions,  ///< further versions of the weights (asynchronous schedules)
  kUnsharded,       ///< gathered parameters, UNSHARD to RESHARD
  kActivations,     ///< what F keeps for the backward
  kRecompute,       ///< what R or the backward rebuilds
  kWorkspace,       ///< of a running F, R, B, I or W
  kCommunication,   ///< received messages, from the issue of their RECV until their consumer starts
};
inline constexpr int kMemoryKindCount = 9;

using BytesByKind = std::array<std::int64_t, kMemoryKindCount>;  ///< [kind]

/// "parameters", "gradients", "optimizer", "weight versions", "unsharded", "activations", "recompute", "workspace",
/// "communication".
std::string_view memory_kind_name(MemoryKind kind);

}}  // namespace plumb::traces
