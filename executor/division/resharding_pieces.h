#pragma once
// How a tensor of a micro-batch goes from the mesh of one pipeline rank to another of a different shape (Zheng et al.
// 2022, section 6): which piece of it each rank sends to which, and what the destination's tensor ranks then do among
// themselves. planner/price/collective/resharding.h has what it costs.
//
// The rows of the tensor, sequences first, are divided over the data ranks that share the micro-batch; the tensor ranks
// of each hold all of them, or a block each (sequence parallelism).

#include <cstdint>
#include <vector>

namespace plumb { inline namespace executor {

enum class Resharding : std::uint8_t {
  kDirect,     ///< every rank is sent all that it holds
  kAllGather,  ///< every tensor rank is sent its share of what all of them hold, and they gather the rest
  kBroadcast,  ///< the first tensor rank is sent all, and passes it on
};

/// How a mesh holds the tensor.
struct MeshTensor {
  int parts = 1;           ///< data ranks that share the micro-batch
  int tensor = 1;          ///< tensor ranks of each
  bool scattered = false;  ///< each of them has a block of its own

  friend bool operator==(const MeshTensor&, const MeshTensor&) = default;
};

/// Elements [first, first + count) of the whole tensor, from one rank to one rank.
struct ReshardingPiece {
  int from_part = 0;
  int from_tensor = 0;
  int to_part = 0;
  int to_tensor = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const ReshardingPiece&, const ReshardingPiece&) = default;
};

/// All pieces of a tensor of `elements`, by destination and then ascending; no two between the same two ranks. Ranks
/// that hold the same take turns in sending it. A scattered destination is sent its blocks, whatever the kind.
std::vector<ReshardingPiece> resharding_pieces(const MeshTensor& from, const MeshTensor& to, Resharding kind,
                                               std::int64_t elements);

/// What of the whole tensor a rank holds.
struct HeldElements {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
HeldElements held_elements(const MeshTensor& mesh, int part, int tensor, std::int64_t elements);

/// Boundaries of the tensor ranks' shares of what all of them hold, from its start on. [tensor + 1]
std::vector<std::int64_t> gathered_bounds(const MeshTensor& mesh, std::int64_t held);

}}  // namespace plumb::executor
