#pragma once
// What the ranks of a stage exchange, as lists that do not depend on the rank: the layers' exchanges by slice and pass,
// and the collectives by which its copies reduce gradients and gather weights (executor/cpu/parameters/parameters.h does the same
// with values).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/cpu/parameters/parameter_places.h"
#include "executor/nccl/layer_exchanges.h"
#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

/// The parameters of one part of a stage: common ones, or routed experts.
class PartExchanges {
 public:
  /// `copies` that have the same parameters, in `group`.
  PartExchanges(const RunSpec& spec, const TrainingPlan& plan, int stage, ParameterPart part, int copies);

  /// REDUCE_GRAD of a bucket; UNSHARD; the reduced gradients of a range of the block become whole.
  std::vector<LayerExchange> reduction(std::size_t bucket) const;
  std::vector<LayerExchange> gather() const;
  std::vector<LayerExchange> range(ElementRange range) const;

  /// Layer by layer (ZeRO 2 and 3): a layer's gradients are reduced, its weights gathered. Empty where nothing is.
  std::vector<LayerExchange> layer_reduction(std::size_t layer) const;
  std::vector<LayerExchange> layer_gather(std::size_t layer) const;

  const ParameterPlaces& places() const { return places_; }

 private:
  std::vector<LayerExchange> shares(CollectiveKind whole, CollectiveKind by_owner,
                                    const std::vector<std::int64_t>& bounds) const;
  std::vector<LayerExchange> reduce_shares(ElementRange range) const;
  std::vector<LayerExchange> gather_words(ElementRange range) const;

  ParameterPlaces places_;
  ExchangeGroup group_;
  int copies_, zero_;
  bool layerwise_, half_;
  ShardBy shard_by_;
  std::vector<std::int64_t> bounds_, word_bounds_;  // [copies + 1]
  std::vector<ElementRange> buckets_;
};

struct StageExchanges {
  /// [slice][layer][pass]; forward, input gradient, weight gradient.
  std::vector<std::vector<std::vector<std::vector<LayerExchange>>>> layers;
  std::vector<PartExchanges> parts;                     ///< common parameters, then experts where the stage has some
  std::vector<std::int64_t> input_words, output_words;  ///< [slice] of 4 bytes, of the messages that reach the stage
  ElementRange tied_embedding, tied_head;               ///< in the common block; count 0: not there
};

StageExchanges stage_exchanges(const RunSpec& spec, const TrainingPlan& plan, int stage);

}}  // namespace plumb::executor
