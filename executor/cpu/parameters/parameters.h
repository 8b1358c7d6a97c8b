#pragma once
// The parameters of one part of a stage on the CPU (routed experts apart from all others): weights and their versions,
// gradients, the optimizer's state, and the update.
//
// Weights and gradients are one block each, layer after layer. A step updates the newest weights in place, unless a
// micro-batch under way still needs them: then it makes a copy and updates that. A version goes when its last
// micro-batch has gone.
//
// In 16 bits the block holds 16-bit weights, which are widened layer by layer for their use, and the optimizer keeps an
// fp32 master copy (Micikevicius et al. 2018). Sharded over the stage's copies (Rajbhandari et al. 2020), a member
// keeps the optimizer's state of its own elements (ZeRO 1), and of gradients (2) and weights (3) its own elements too:
// the whole block is there from the first gradient to the reduction, and from UNSHARD to RESHARD.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/cpu/parameters/layer_moves.h"
#include "executor/cpu/parameters/optimizer_state.h"
#include "executor/cpu/parameters/parameter_places.h"
#include "executor/run_spec.h"
#include "executor/tensor_pool.h"
#include "executor/training/parameter_bytes.h"
#include "executor/training/step_scale.h"
#include "executor/training/training_state.h"
#include "executor/transport/collective.h"

namespace plumb { inline namespace executor {

/// [layer][parameter][element]
using LayerValues = std::vector<std::vector<std::vector<float>>>;

struct CpuParameterOptions {
  std::vector<Layer> layers;  ///< as a whole
  TensorSeat tensor;          ///< whose share of them this is
  ParameterPart part = ParameterPart::kCommon;
  ExpertSeat experts;   ///< which of the experts these are
  int first_layer = 0;  ///< its number in the model
  OptimizerSettings optimizer;
  std::uint64_t seed = 1;
  std::optional<HalfFormat> half;  ///< of the weights' storage; none: fp32
  int zero = 0;                    ///< what is sharded: 0 nothing, 1 optimizer state, 2 and gradients, 3 and weights
  ParameterShares shares;          ///< of the block's elements; none: there is one copy, and nothing is sharded
  ShardBy shard_by = ShardBy::kElement;
  std::vector<ElementRange> buckets;  ///< of gradients; none: all in one
  Communicator* layerwise = nullptr;  ///< the copies, if ZeRO 2 and 3 go layer by layer (layer_moves.h); outlives them
  TensorPool* state_pool = nullptr;  ///< where the optimizer's state lives and updates are made; null: the stage's pool
};

/// A layer's weights in fp32, for one use.
struct WidenedWeights {
  Tensor widened;  ///< empty where the block is in fp32
  const float* data = nullptr;
};

class CpuParameters {
 public:
  /// Initial weights, zero gradients and state. The pools outlive the parameters.
  CpuParameters(const CpuParameterOptions& options, TensorPool& pool);

  /// Starts a replay: the newest weights are version 0. `uses[v]` counts the release()s of version v to come.
  void begin(std::vector<int> uses);

  /// A use of a version is over.
  void release(int version);

  /// The layer's share of a version's weights, which is held and whole, and of the gradients. Layer by layer the
  /// weights are gathered here; then those of `next` are started on.
  WidenedWeights weights(int version, std::size_t layer, std::optional<std::size_t> next = {});
  float* gradients(std::size_t layer);

  /// The layer's weight gradient of a micro-batch is complete: layer by layer it is reduced.
  void complete(std::size_t layer);

  /// Of the gradients that this member speaks for (its own, whether or not state is sharded), but for `excluded`
  /// elements of the block.
  GradientMeasure measure(ElementRange excluded) const;

  /// Multiplies the own gradients.
  void scale_gradients(float factor);

  /// Makes the next version of the weights from the gradients, or with `skip` the same ones again, and zeroes these.
  void step(const CpuKernelSet& kernels, bool skip = false);

  // Collectives with the other copies, over memory that stays until the counterpart is called (executor/stage.h).

  /// The bucket's gradients are summed: all of them on every copy, or the own elements where state is sharded.
  std::vector<Collective> start_reduction(std::size_t bucket);
  void finish_reduction();

  /// The newest weights become whole from the shares.
  std::vector<Collective> start_gather();

  /// Drops the whole weights where they are sharded.
  void drop_gathered();

  /// The reduced gradients of a range become whole; range_gradients() are they, and what is written there is taken back
  /// at the finish. Several ranges may be open, each in a slot of its own.
  std::vector<Collective> start_range(std::size_t slot, ElementRange range);
  std::span<float> range_gradients(std::size_t slot) { return open_ranges_[slot].values; }
  void finish_range(std::size_t slot);

  const ParameterPlaces& places() const { return places_; }
  std::span<float> all_gradients() { return gradients_.values(); }
  std::span<float> newest_weights() { return versions_.back().weights.values(); }
  std::int64_t updates() const { return updates_; }
  int held_versions() const { return static_cast<int>(versions_.size()); }
  ParameterBytes held_bytes() const;

  /// Writes the own elements of the gradients, or of the newest weights (the fp32 ones, in 16 bits the master copy),
  /// into the model's values: [layer of the model][parameter][element].
  void copy_gradients(LayerValues& model) const { copy_own(model, own_gradients()); }
  void copy_weights(LayerValues& model) const { copy_own(model, own_weights()); }

  /// Writes the own elements of weights and optimizer state into the model's, and takes up a model's: weights, state
  /// and the count of updates. Both have room_for_state()'s shape.
  void save(TrainingState& state) const;
  void restore(const TrainingState& state);

  /// The same of the tensor rank's share of the stage: [layer in the stage][parameter][element]; elements that others
  /// own are 0.
  LayerValues gradient_values() const { return values_of_share(own_gradients()); }
  LayerValues weight_values() const { return values_of_share(own_weights()); }

 private:
  struct Version {
    int number = 0;  // steps since begin()
    Tensor weights;
  };

  struct OpenRange {
    ElementRange range;
    Tensor copy;  // where gradients are sharded
    std::span<float> values;
    std::vector<std::int64_t> bounds;  // [members + 1]
  };

  bool is_in_use(int version) const;
  bool is_held_whole() const { return options_.zero < 3; }
  std::int64_t elements() const { return places_.first_element.back(); }
  Tensor take_weights(std::int64_t elements);
  std::vector<float> initial_weights() const;
  Tensor& own_block() { return is_held_whole() ? versions_.back().weights : weight_share_; }
  const Tensor& own_block() const { return is_held_whole() ? versions_.back().weights : weight_share_; }
  std::int64_t first_in_own_block() const { return is_held_whole() ? own_.first : 0; }
  const float* own_gradients() const;
  void update(const CpuKernelSet& kernels);
  ElementRange own_in(ElementRange range) const;
  ElementRange words_of(std::size_t layer) const;
  bool gathers_layers() const { return layer_moves_ && !is_held_whole(); }
  struct WholeRun {  // of elements of one piece
    std::size_t piece = 0;
    std::int64_t first_in_piece = 0;
    std::size_t layer = 0;   // of the model
    std::size_t index = 0;   // of the layer's parameters
    std::int64_t whole = 0;  // first element of the whole parameter
    std::int64_t first_in_own = 0;
    std::int64_t count = 0;
  };

  enum class Replicated : std::uint8_t { kAll, kOnFirstTensorRank };
  template <class Visit>
  void for_each_run(const std::vector<ParameterPiece>& pieces, Replicated replicated, Visit visit) const;
  void store_weights(std::span<const float> whole);
  const float* own_weights() const;
  void copy_own(LayerValues& model, const float* own) const;
  LayerValues values_of_share(const float* own) const;

  const CpuParameterOptions options_;
  TensorPool& pool_;
  TensorPool& state_pool_;
  const ParameterPlaces places_;
  const ElementRange own_;                                  // all elements, unless state is sharded
  const std::vector<ParameterPiece> pieces_;                // of own_
  const std::vector<ElementRange> replicas_;                // for which another tensor rank speaks, ascending
  std::vector<ElementRange> buckets_;                       // of gradients, in the order of completion
  std::vector<Version> versions_;                           // ascending; the newest last
  std::vector<int> uses_;                                   // [version] still to be released
  Tensor weight_share_;                                     // [own], where weights are sharded
  Tensor gradients_;                                        // [elements]
  Tensor gradient_share_;                                   // [own], where gradients are sharded
  std::vector<Tensor> layer_gradients_;                     // [layer] whole, where gradients are reduced layer by layer
  std::optional<LayerMoves> layer_moves_, gradient_moves_;  // of weights in words, and of gradients
  Tensor reducing_;                                         // [elements], where gradients are sharded: on their way
  std::array<OpenRange, 2> open_ranges_;                    // a slot for each end of the model
  std::vector<std::vector<std::int64_t>> bucket_bounds_;    // [bucket][members + 1]
  std::vector<std::int64_t> word_bounds_;                   // [members + 1] of the weights' storage in words
  Tensor master_;                                           // [own] in fp32, where weights are in 16 bits
  std::vector<std::vector<Tensor>> state_;                  // [piece]
  std::int64_t updates_ = 0;                                // since the beginning, for bias corrections
};

}}  // namespace plumb::executor
