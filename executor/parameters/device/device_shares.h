#pragma once
// The shares of a stage's parameters that its copies hold on devices, and the exchanges between the copies: gradients
// are summed bucket by bucket, or each copy gets the sum of its share (ZeRO; Rajbhandari et al. 2020), and weights are
// gathered from the shares. tests/executor/transport/nccl/order holds these exchanges against those of the cpu backend.

#include <cstdint>
#include <vector>

#include "executor/groups/communicator_numbers.h"
#include "executor/groups/device_exchange.h"
#include "executor/layers/parameter_places.h"
#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

struct DeviceShareOptions {
  CommunicatorSeat copies;  ///< seat among the stage's copies; where it is alone nothing is exchanged or sharded
  int zero = 0;
  ShardBy shard_by = ShardBy::kElement;
  bool is_half = false;            ///< weights are stored in 16 bits
  std::vector<int> bucket_layers;  ///< [bucket] layers, from the last on; empty: all in one
  bool layerwise = false;          ///< ZeRO 2 and 3 reduce and gather layer by layer inside passes
};

class DeviceShares {
 public:
  DeviceShares() = default;
  DeviceShares(const ParameterPlaces& places, const DeviceShareOptions& options);

  /// Stage of ZeRO; 0 where there is one copy.
  int zero() const { return zero_; }
  /// True if this copy speaks for its elements: where nothing is sharded, others have them too.
  bool speaks() const { return zero_ > 0 || options_.copies.member == 0; }
  /// Elements of the stage's block whose optimizer state is here: all, unless it is sharded.
  ElementRange own() const { return own_; }

  /// Returns the reduction of the block's gradients: of a bucket, or with ZeRO 2 and 3 of all.
  std::vector<DeviceExchange> reduction(std::size_t bucket, float* gradients) const;

  /// True if passes reduce each layer's gradients; true if they gather each layer's weights.
  bool reduces_layers() const { return options_.layerwise && zero_ >= 2; }
  bool gathers_layers() const { return options_.layerwise && zero_ == 3; }

  /// Return the reduction of a layer's gradients, where the layer is a range of the block; the gather of its weights as
  /// they are stored, from the word on in which the range begins; and the range in words of 4 bytes, whole ones in 16
  /// bits.
  std::vector<DeviceExchange> layer_reduction(ElementRange layer, float* gradients) const;
  std::vector<DeviceExchange> layer_gather(ElementRange layer, std::byte* weights) const;
  ElementRange words_of(ElementRange layer) const;

  /// Elements of the block that this copy measures; each element is some copy's.
  ElementRange spoken_for() const { return ParameterShares{bounds_, options_.copies.member}.own(); }

  /// Returns the gather of a range of the block's gradients, of which each copy has its share. values: [count]
  std::vector<DeviceExchange> gather_gradients(ElementRange range, float* values) const;

  /// Returns the gather of the block's weights as they are stored.
  std::vector<DeviceExchange> gather(std::byte* weights) const;

  /// [bucket] its first layer, behind whose gradients those of the bucket are complete.
  const std::vector<std::size_t>& first_layers() const { return first_layers_; }

 private:
  std::vector<DeviceExchange> shares(CollectiveKind whole, CollectiveKind by_owner,
                                     const std::vector<std::int64_t>& bounds, float* values) const;

  DeviceShareOptions options_;
  int zero_ = 0;
  ElementRange own_;
  std::vector<std::int64_t> bounds_, word_bounds_;  // [copies + 1]
  std::vector<ElementRange> buckets_;
  std::vector<std::size_t> first_layers_;  // [bucket]
};

}}  // namespace plumb::executor
