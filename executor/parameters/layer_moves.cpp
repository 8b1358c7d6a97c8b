#include "executor/parameters/layer_moves.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace executor {

std::vector<Collective> reduce_shares(std::span<float> values, std::span<const std::int64_t> bounds, ShardBy shard_by) {
  if (shard_by == ShardBy::kElement) return {reduce_scatter(values, bounds)};
  std::vector<Collective> collectives;
  for (std::size_t owner = 0; owner + 1 < bounds.size(); ++owner)
    if (bounds[owner] < bounds[owner + 1])
      collectives.push_back(reduce(values.subspan(static_cast<std::size_t>(bounds[owner]),
                                                  static_cast<std::size_t>(bounds[owner + 1] - bounds[owner])),
                                   static_cast<int>(owner)));
  return collectives;
}

std::vector<Collective> gather_shares(std::span<float> values, std::span<const std::int64_t> bounds, ShardBy shard_by) {
  if (shard_by == ShardBy::kElement) return {all_gather(values, bounds)};
  std::vector<Collective> collectives;
  for (std::size_t owner = 0; owner + 1 < bounds.size(); ++owner)
    if (bounds[owner] < bounds[owner + 1])
      collectives.push_back(broadcast(values.subspan(static_cast<std::size_t>(bounds[owner]),
                                                     static_cast<std::size_t>(bounds[owner + 1] - bounds[owner])),
                                      static_cast<int>(owner)));
  return collectives;
}

std::vector<std::int64_t> clipped_bounds(std::span<const std::int64_t> bounds, ElementRange range) {
  std::vector<std::int64_t> inside;
  for (const std::int64_t bound : bounds)
    inside.push_back(std::clamp(bound, range.first, range.first + range.count) - range.first);
  return inside;
}

LayerMoves::LayerMoves(Communicator& copies, std::vector<std::int64_t> bounds, ShardBy shard_by, TensorPool& pool)
    : copies_(copies), bounds_(std::move(bounds)), shard_by_(shard_by), pool_(pool) {}

/// Returns the own elements in a range, as a range of the block.
ElementRange LayerMoves::own_in(ElementRange range) const {
  const auto member = static_cast<std::size_t>(copies_.member());
  const std::int64_t first = std::max(bounds_[member], range.first);
  const std::int64_t end = std::min(bounds_[member + 1], range.first + range.count);
  return {first, std::max<std::int64_t>(0, end - first)};
}

void LayerMoves::begin(ElementRange range, std::span<const float> own) {
  ahead_.emplace(Ahead{.range = range, .values = pool_.take(range.count), .bounds = clipped_bounds(bounds_, range)});
  const ElementRange here = own_in(range);
  std::copy_n(own.data() + (here.first - bounds_[static_cast<std::size_t>(copies_.member())]), here.count,
              ahead_->values.data() + (here.first - range.first));
  for (const Collective& collective : gather_shares(ahead_->values.values(), ahead_->bounds, shard_by_))
    ahead_->tickets.push_back(copies_.start(collective));
}

void LayerMoves::finish() {
  for (const CollectiveTicket ticket : ahead_->tickets) copies_.wait(ticket);
}

Tensor LayerMoves::gather(ElementRange range, std::optional<ElementRange> next, std::span<const float> own) {
  if (ahead_ && ahead_->range.first != range.first) {  // another range is wanted
    finish();
    ahead_.reset();
  }
  if (!ahead_) begin(range, own);
  finish();
  Tensor whole = std::move(ahead_->values);
  ahead_.reset();
  if (next) begin(*next, own);
  return whole;
}

void LayerMoves::reduce(ElementRange range, std::span<float> gradients, std::span<float> own) {
  const std::vector<std::int64_t> bounds = clipped_bounds(bounds_, range);
  for (const Collective& collective : reduce_shares(gradients, bounds, shard_by_)) copies_.run(collective);
  const ElementRange here = own_in(range);
  const float* sum = gradients.data() + (here.first - range.first);
  float* total = own.data() + (here.first - bounds_[static_cast<std::size_t>(copies_.member())]);
  for (std::int64_t i = 0; i < here.count; ++i) total[i] += sum[i];
}

}}  // namespace plumb::executor
