#pragma once
// The parameters of one part of a stage on the CPU (routed experts apart from all others): weights and their versions,
// gradients, the optimizer's state, and the update.
//
// Weights and gradients are one block each, layer after layer. A step updates the newest weights in place, unless a
// micro-batch under way still needs them: then it makes a copy and updates the copy. A version is freed when its last
// micro-batch has released it.
//
// In 16 bits the block holds 16-bit weights, which are widened layer by layer for their use, and the optimizer keeps an
// fp32 master copy (Micikevicius et al. 2018). If the state is sharded over the stage's copies (Rajbhandari et al.
// 2020), a member keeps only its own elements of the optimizer state (ZeRO 1), of the gradients (2) and of the weights
// (3). The whole block of gradients exists from the first gradient to the reduction, and the whole block of weights
// from UNSHARD to RESHARD.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/layers/parameter_places.h"
#include "executor/parameters/layer_moves.h"
#include "executor/parameters/optimizer_state.h"
#include "executor/parameters/parameter_bytes.h"
#include "executor/parameters/step_scale.h"
#include "executor/parameters/training_state.h"
#include "executor/spec/run_spec.h"
#include "executor/transport/collective.h"
#include "executor/transport/tensor_pool.h"

namespace plumb { inline namespace executor {

/// [layer][parameter][element]
using LayerValues = std::vector<std::vector<std::vector<float>>>;

struct CpuParameterOptions {
  std::vector<Layer> layers;  ///< whole layers, undivided
  TensorSeat tensor;          ///< tensor rank whose share of the layers this is
  ParameterPart part = ParameterPart::kCommon;
  ExpertSeat experts;   ///< expert rank whose share of the experts this is
  int first_layer = 0;  ///< number of its first layer in the model
  OptimizerSettings optimizer;
  std::uint64_t seed = 1;
  std::optional<HalfFormat> half;  ///< format in which weights are stored; none: fp32
  int zero = 0;                    ///< sharded state: 0 none, 1 the optimizer's, 2 gradients too, 3 weights too
  ParameterShares shares;          ///< shares of the block's elements; empty: one copy, and nothing is sharded
  ShardBy shard_by = ShardBy::kElement;
  std::vector<ElementRange> buckets;  ///< gradient buckets; none: one bucket of all
  /// The copies, if ZeRO 2 and 3 go layer by layer (layer_moves.h), or null; must outlive the parameters.
  Communicator* layerwise = nullptr;
  /// Memory of the optimizer's state, where updates are made; null: the stage's pool.
  TensorPool* state_pool = nullptr;
};

/// The weights of a layer in fp32, for one use.
struct WidenedWeights {
  Tensor widened;  ///< empty where the block is in fp32 and whole
  const float* data = nullptr;
};

class CpuParameters {
 public:
  /// Makes initial weights, zero gradients and zero state. The pools must outlive the parameters.
  CpuParameters(const CpuParameterOptions& options, TensorPool& pool);

  /// Starts a replay: the newest weights become version 0. `uses[v]` counts the release() calls of version v to come.
  void begin(std::vector<int> uses);

  /// Ends one use of a version.
  void release(int version);

  /// Return the layer's range of a version's weights, which must be held and whole, and of the gradients. With ZeRO 3
  /// layer by layer, weights() gathers the range and then starts the gather of `next`.
  WidenedWeights weights(int version, std::size_t layer, std::optional<std::size_t> next = {});
  float* gradients(std::size_t layer);

  /// Ends the layer's weight gradient of a micro-batch: layer by layer the gradient is reduced now.
  void complete(std::size_t layer);

  /// Returns the measure of the gradients that this member counts (its own share, even if no state is sharded), without
  /// the `excluded` elements of the block.
  GradientMeasure measure(ElementRange excluded) const;

  /// Multiplies the gradients that this member holds by `factor`.
  void scale_gradients(float factor);

  /// Makes the next version of the weights from the gradients, or with `skip` the same weights again, and zeroes the
  /// gradients.
  void step(const CpuKernelSet& kernels, bool skip = false);

  // Collectives with the other copies. Their memory stays where it is until the counterpart is called
  // (executor/stages/stage.h).

  /// Returns the collectives that sum the bucket's gradients: all of them on every copy, or the own elements where
  /// state is sharded.
  std::vector<Collective> start_reduction(std::size_t bucket);
  void finish_reduction();

  /// Returns the collective that sums the own elements of the reduced gradients over members with the same ones.
  Collective sum_of_shares();

  /// Returns the collectives that gather the newest weights from the shares.
  std::vector<Collective> start_gather();

  /// Drops the gathered weights where weights are sharded.
  void drop_gathered();

  /// start_range returns the collectives that gather the reduced gradients of a range. range_gradients are these
  /// gradients, and finish_range takes back the values that were written into them. Several ranges may be open, each in
  /// a slot of its own.
  std::vector<Collective> start_range(std::size_t slot, ElementRange range);
  std::span<float> range_gradients(std::size_t slot) { return open_ranges_[slot].values; }
  void finish_range(std::size_t slot);

  const ParameterPlaces& places() const { return places_; }
  std::span<float> all_gradients() { return gradients_.values(); }
  std::span<float> newest_weights() { return versions_.back().weights.values(); }
  std::int64_t updates() const { return updates_; }
  int held_versions() const { return static_cast<int>(versions_.size()); }
  ParameterBytes held_bytes() const;

  /// Write the own elements of the gradients, or of the newest weights (in fp32: in 16 bits those of the master copy),
  /// into the model's values: [layer of the model][parameter][element].
  void copy_gradients(LayerValues& model) const { copy_own(model, own_gradients()); }
  void copy_weights(LayerValues& model) const { copy_own(model, own_weights()); }

  /// save() writes the own elements of weights and optimizer state into a checkpoint. restore() takes weights, state
  /// and the count of updates from one. Both have room_for_state()'s shape.
  void save(TrainingState& state) const;
  void restore(const TrainingState& state);

  /// Return the gradients, or the weights, of the tensor rank's share of the stage: [layer in the
  /// stage][parameter][element]. Elements that other members own are 0.
  LayerValues gradient_values() const { return values_of_share(own_gradients()); }
  LayerValues weight_values() const { return values_of_share(own_weights()); }

 private:
  struct Version {
    int number = 0;  // steps since begin()
    Tensor weights;
  };

  struct OpenRange {
    ElementRange range;
    Tensor copy;  // copy of the range where gradients are sharded
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
  /// A run of elements of one piece that lies in one of the model's parameters.
  struct WholeRun {
    std::size_t piece = 0;
    std::int64_t first_in_piece = 0;
    std::size_t layer = 0;   // number in the model
    std::size_t index = 0;   // number among the layer's parameters
    std::int64_t whole = 0;  // first element in the whole parameter
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
  const ElementRange own_;                     // own elements: all, unless state is sharded
  const std::vector<ParameterPiece> pieces_;   // the parameters' pieces in own_
  const std::vector<ElementRange> uncounted_;  // elements that another tensor rank counts, ascending
  std::vector<ElementRange> buckets_;          // gradient buckets, in the order of completion
  std::vector<Version> versions_;              // ascending; the newest last
  std::vector<int> uses_;                      // [version] releases to come
  Tensor weight_share_;                        // [own], where weights are sharded
  Tensor gradients_;                           // [elements]
  Tensor gradient_share_;                      // [own], where gradients are sharded
  std::vector<Tensor> layer_gradients_;        // [layer] whole gradients, where they are reduced layer by layer
  std::optional<LayerMoves> layer_moves_, gradient_moves_;  // moves of the weights' words, and of the gradients
  Tensor reducing_;                       // [elements] gradients on their way, where gradients are sharded
  std::array<OpenRange, 2> open_ranges_;  // [slot] one for each end of the model
  std::vector<std::vector<std::int64_t>> bucket_bounds_;  // [bucket][members + 1]
  std::vector<std::int64_t> word_bounds_;                 // [members + 1] shares of the weights' storage, in words
  Tensor master_;                                         // [own] fp32 master weights, where weights are in 16 bits
  std::vector<std::vector<Tensor>> state_;                // [piece]
  std::int64_t updates_ = 0;                              // updates since the beginning, for bias corrections
};

}}  // namespace plumb::executor
