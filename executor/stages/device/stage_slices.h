#pragma once
// The layers of a stage as they work on a micro-batch, slice by slice: each slice of a sequence has its own layers, as
// these are made for so many tokens, and its own places of their tensors.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/device/device_stage_options.h"
#include "executor/stages/device/stage_layout.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

struct PlacedLayer {
  DeviceLayer layer;
  std::int64_t constants = 0;           ///< number of its first constant among the stage's
  std::int64_t expert_layers = 0;       ///< layers with experts before it
  std::int64_t sequences = 0;           ///< bytes before its part of what is kept of whole sequences
  std::int64_t sequence_gradients = 0;  ///< bytes before its part of the gradients of these
};

struct StageSlice {
  int number = 0;
  ContextTokens tokens;  ///< tokens of each sequence that this slice and this rank have
  LayerWork work;
  std::int64_t first_row = 0;  ///< of the micro-batch's T rows, which stand slice by slice
  std::vector<PlacedLayer> layers;
  StageLayout layout;       ///< of a micro-batch that is computed again, if one is
  StageLayout kept_layout;  ///< of a micro-batch that is kept where others are computed again
};

class StageSlices {
 public:
  explicit StageSlices(const DeviceStageOptions& options);

  /// This rank's share of the layers.
  const std::vector<Layer>& layers() const { return layers_; }
  std::int64_t element_bytes() const { return element_bytes_; }
  /// Rows of a micro-batch, T.
  std::int64_t tokens() const { return tokens_; }

  const StageSlice& slice(int number) const { return slices_[static_cast<std::size_t>(number)]; }
  /// Places of a micro-batch's tensors in a slice.
  const StageLayout& layout_of(const StageSlice& slice, int microbatch) const;

  /// Bytes of the stage's input and output in a slice; and of the largest slice.
  std::int64_t input_bytes(int slice) const;
  std::int64_t output_bytes(int slice) const;
  std::int64_t input_bytes() const { return input_bytes(largest_); }
  std::int64_t output_bytes() const { return output_bytes(largest_); }

  /// Bytes of a micro-batch that is computed again, if one is, and of workspace. All slices have the places of the
  /// largest one; later ones may need more workspace.
  StageMemory rebuilt_memory() const { return memory_of(kRebuilt); }
  /// [micro-batch] bytes of each, where micro-batches are not alike; otherwise empty.
  std::vector<StageMemory> microbatch_memory() const;

  /// Bytes that the slices of a micro-batch keep of its whole sequences, from the first F to the last I; and of the
  /// gradients that they add to, from the first I on.
  std::int64_t sequence_bytes() const { return of_sequences_.sequences; }
  std::int64_t sequence_gradient_bytes() const { return of_sequences_.sequence_gradients; }

  /// Numbers that the layers read and that never change, of all slices.
  const std::vector<float>& constants() const { return constants_; }
  std::int64_t expert_layers() const { return expert_layers_; }

 private:
  static constexpr int kRebuilt = -1;  // any micro-batch that is computed again

  void place_layers(const DeviceStageOptions& options, TokenRange shared, StageSlice& slice);
  StageMemory memory_of(int microbatch) const;

  std::vector<Layer> layers_;
  std::vector<bool> kept_microbatches_;
  std::int64_t element_bytes_, tokens_;
  std::vector<StageSlice> slices_;
  int largest_ = 0;
  DeviceLayerBytes of_sequences_;  // of all layers
  std::vector<float> constants_;
  std::int64_t expert_layers_ = 0;
};

}}  // namespace plumb::executor
