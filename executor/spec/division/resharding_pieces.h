#pragma once
// The pieces in which a tensor of a micro-batch goes from the mesh of one pipeline rank to a mesh of a different shape
// (Zheng et al. 2022, section 6): the piece that each rank sends to each other, and the collective in which the
// destination's tensor ranks then complete it. planner/price/collective/resharding.h has the cost.
//
// The rows of the tensor, sequences first, are divided over the data ranks that share the micro-batch. The tensor ranks
// of each data rank hold all of its rows, or a block each (sequence parallelism).

#include <cstdint>
#include <vector>

namespace plumb { inline namespace executor {

enum class Resharding : std::uint8_t {
  kDirect,     ///< every rank is sent all elements that it holds
  kAllGather,  ///< every tensor rank is sent its share of the rows, and they gather the rest
  kBroadcast,  ///< the first tensor rank is sent all elements, and broadcasts them
};

/// The way in which a mesh holds the tensor.
struct MeshTensor {
  int parts = 1;           ///< data ranks that share the micro-batch
  int tensor = 1;          ///< tensor ranks of each data rank
  bool scattered = false;  ///< each tensor rank has a block of its own

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

/// Returns all pieces of a tensor of `elements`, by destination and then ascending; there is at most one between two
/// ranks. Ranks that hold the same elements take turns in sending them. A scattered destination is sent its blocks,
/// whatever the kind.
std::vector<ReshardingPiece> resharding_pieces(const MeshTensor& from, const MeshTensor& to, Resharding kind,
                                               std::int64_t elements);

/// The elements of the whole tensor that a rank holds.
struct HeldElements {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
HeldElements held_elements(const MeshTensor& mesh, int part, int tensor, std::int64_t elements);

/// Returns the boundaries of the tensor ranks' shares of the `held` elements that all of them hold, counted from their
/// first. [tensor + 1]
std::vector<std::int64_t> gathered_bounds(const MeshTensor& mesh, std::int64_t held);

}}  // namespace plumb::executor
