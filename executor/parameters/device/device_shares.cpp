#include "executor/parameters/device/device_shares.h"

#include <algorithm>

#include "executor/parameters/layer_moves.h"

namespace plumb { inline namespace executor {

DeviceShares::DeviceShares(const ParameterPlaces& places, const DeviceShareOptions& options)
    : options_(options),
      zero_(options.copies.members > 1 ? options.zero : 0),
      own_({0, places.first_element.back()}),
      bounds_(options.shard_by == ShardBy::kElement
                  ? shares_by_element(places.first_element.back(), options.copies.members)
                  : shares_by_layer(places, options.copies.members)) {
  for (const std::int64_t bound : bounds_) word_bounds_.push_back(options.is_half ? (bound + 1) / 2 : bound);
  if (zero_ > 0) own_ = ParameterShares{bounds_, options.copies.member}.own();
  std::size_t layer = places.first_element.size() - 1;
  std::vector<int> bucket_layers = options.bucket_layers;
  if (bucket_layers.empty()) bucket_layers.push_back(static_cast<int>(layer));
  for (const int layers : bucket_layers) {
    const std::int64_t end = places.first_element[layer];
    layer -= static_cast<std::size_t>(layers);
    buckets_.push_back({places.first_element[layer], end - places.first_element[layer]});
    first_layers_.push_back(layer);
  }
}

/// Returns one exchange of all shares at once, or one for each owner. bounds: [copies + 1] within `values`.
std::vector<DeviceExchange> DeviceShares::shares(CollectiveKind whole, CollectiveKind by_owner,
                                                 const std::vector<std::int64_t>& bounds, float* values) const {
  const auto exchange = [&](CollectiveKind kind, std::int64_t first, std::int64_t count) {
    return DeviceExchange{.kind = kind,
                          .communicator = options_.copies.number,
                          .member = options_.copies.member,
                          .values = reinterpret_cast<std::byte*>(values + first),
                          .elements = count};
  };
  std::vector<DeviceExchange> exchanges;
  if (options_.shard_by == ShardBy::kElement) {
    if (bounds.back() == 0) return exchanges;
    exchanges.push_back(exchange(whole, 0, bounds.back()));
    exchanges.back().bounds = bounds;
    return exchanges;
  }
  for (std::size_t owner = 0; owner + 1 < bounds.size(); ++owner) {
    if (bounds[owner] == bounds[owner + 1]) continue;
    exchanges.push_back(exchange(by_owner, bounds[owner], bounds[owner + 1] - bounds[owner]));
    exchanges.back().peer = static_cast<std::int32_t>(owner);
  }
  return exchanges;
}

std::vector<DeviceExchange> DeviceShares::reduction(std::size_t bucket, float* gradients) const {
  if (options_.copies.members == 1 || reduces_layers()) return {};
  const ElementRange range = zero_ < 2 ? buckets_[bucket] : ElementRange{0, bounds_.back()};
  if (range.count == 0) return {};
  if (zero_ > 0)
    return shares(CollectiveKind::kReduceScatter, CollectiveKind::kReduce, clipped_bounds(bounds_, range),
                  gradients + range.first);
  return {{.kind = CollectiveKind::kAllReduce,
           .communicator = options_.copies.number,
           .member = options_.copies.member,
           .values = reinterpret_cast<std::byte*>(gradients + range.first),
           .elements = range.count}};
}

std::vector<DeviceExchange> DeviceShares::gather_gradients(ElementRange range, float* values) const {
  if (zero_ == 0) return {};
  return shares(CollectiveKind::kAllGather, CollectiveKind::kBroadcast, clipped_bounds(bounds_, range), values);
}

std::vector<DeviceExchange> DeviceShares::gather(std::byte* weights) const {
  if (options_.copies.members == 1 || gathers_layers()) return {};
  return shares(CollectiveKind::kAllGather, CollectiveKind::kBroadcast, word_bounds_,
                reinterpret_cast<float*>(weights));
}

std::vector<DeviceExchange> DeviceShares::layer_reduction(ElementRange layer, float* gradients) const {
  return shares(CollectiveKind::kReduceScatter, CollectiveKind::kReduce, clipped_bounds(bounds_, layer), gradients);
}

std::vector<DeviceExchange> DeviceShares::layer_gather(ElementRange layer, std::byte* weights) const {
  return shares(CollectiveKind::kAllGather, CollectiveKind::kBroadcast, clipped_bounds(word_bounds_, words_of(layer)),
                reinterpret_cast<float*>(weights));
}

ElementRange DeviceShares::words_of(ElementRange layer) const {
  if (!options_.is_half) return layer;
  return {layer.first / 2, (layer.first + layer.count + 1) / 2 - layer.first / 2};
}

}}  // namespace plumb::executor
