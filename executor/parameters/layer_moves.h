#pragma once
// ZeRO 2 and 3 layer by layer (Rajbhandari et al. 2020; Zhao et al. 2023): the copies of a stage gather the weights of
// a layer for its use, one layer ahead, and reduce its gradients when its weight gradient is complete, so that two
// layers' weights and one layer's gradients stand whole. Every copy works on the same layers in the same order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/layers/parameter_places.h"
#include "executor/spec/run_spec.h"
#include "executor/transport/communicator.h"
#include "executor/transport/tensor_pool.h"

namespace plumb { inline namespace executor {

/// Return the collectives that give each member the sum of its share of `values` (reduce_shares), or all shares to
/// everyone (gather_shares): all shares in one collective, or owner by owner. bounds: [members + 1]; must outlive the
/// collectives.
std::vector<Collective> reduce_shares(std::span<float> values, std::span<const std::int64_t> bounds, ShardBy shard_by);
std::vector<Collective> gather_shares(std::span<float> values, std::span<const std::int64_t> bounds, ShardBy shard_by);

/// Returns the boundaries of the shares within a range, counted from the range's start.
std::vector<std::int64_t> clipped_bounds(std::span<const std::int64_t> bounds, ElementRange range);

class LayerMoves {
 public:
  /// `copies` and `pool` must outlive the object. bounds: [members + 1] boundaries of the block's shares.
  LayerMoves(Communicator& copies, std::vector<std::int64_t> bounds, ShardBy shard_by, TensorPool& pool);

  /// Returns a range of the block, whole, and then starts the gather of `next`, if there is one. `own`: this member's
  /// share of the block.
  Tensor gather(ElementRange range, std::optional<ElementRange> next, std::span<const float> own);

  /// Adds this member's share of the sum of a range's gradients to `own`.
  void reduce(ElementRange range, std::span<float> gradients, std::span<float> own);

 private:
  struct Ahead {
    ElementRange range;
    Tensor values;
    std::vector<std::int64_t> bounds;
    std::vector<CollectiveTicket> tickets;
  };

  void begin(ElementRange range, std::span<const float> own);
  void finish();
  ElementRange own_in(ElementRange range) const;

  Communicator& copies_;
  const std::vector<std::int64_t> bounds_;
  const ShardBy shard_by_;
  TensorPool& pool_;
  std::optional<Ahead> ahead_;
};

}}  // namespace plumb::executor
