#pragma once
// One pass of a stage over a micro-batch, or over one slice of it: F, R, I, W or B (I and W in one), recorded over
// memory that the call names.

#include <cstddef>
#include <cstdint>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/device/device_stage_options.h"
#include "executor/parameters/device/stage_parameters.h"
#include "executor/program/calls/recorded_calls.h"
#include "executor/stages/device/pass_moves.h"
#include "executor/stages/device/stage_data.h"
#include "executor/stages/device/stage_slices.h"

namespace plumb { inline namespace executor {

/// The micro-batch of a pass and the memory on which it works.
struct DevicePass {
  int microbatch = 0;
  int slice = 0;
  bool recomputes = false;             ///< I, B: no R has run, so that the pass computes again what there is to
  bool completes_buckets = false;      ///< W, B: marks where a bucket of gradients is complete
  std::byte* early = nullptr;          ///< activations that F keeps until I
  std::byte* late = nullptr;           ///< activations that F keeps until W
  std::byte* rebuilt_early = nullptr;  ///< activations that R, I or B computes again, until I
  std::byte* rebuilt_late = nullptr;   ///< the same, until W
  std::byte* workspace = nullptr;
  const std::byte* incoming = nullptr;  ///< the stage's input (F), or the gradient of its output (I); null: none
  std::byte* outgoing = nullptr;        ///< its output (F), or the gradient of its input (I); null: none
  PassParameters parameters;
  std::byte* sequences = nullptr;       ///< activations that slices keep of their whole sequences
  float* sequence_gradients = nullptr;  ///< gradients of those
};

/// The parts of a stage that its passes read.
struct PassStage {
  const DeviceStageOptions& options;
  const StageSlices& slices;
  const StageParameters& parameters;
  const StageData& data;
  const float* constants = nullptr;      ///< those of the layers, on the device
  const StepNumbers* numbers = nullptr;  ///< the step's, on the device
};

class StagePass {
 public:
  /// The parts of the stage, the recorder and the pass outlive it.
  StagePass(const PassStage& stage, CallRecorder& recorder, const DevicePass& pass);

  void forward();
  /// R: computes again all that is to be, from the activations that F has kept.
  void recompute();
  void input_grad();
  void weight_grad();
  void backward();

 private:
  /// Places of a layer's tensors of a micro-batch.
  struct LayerMemory {
    std::byte* early = nullptr;
    std::byte* late = nullptr;
    std::byte* cheap = nullptr;
  };

  std::size_t layers() const { return slice_.layers.size(); }
  const DeviceLayer& layer(std::size_t number) const { return slice_.layers[number].layer; }
  LayerMemory memory_of(std::size_t layer) const;
  LayerMemory forward_memory(std::size_t layer) const;
  DeviceLayerCall call_of(std::size_t layer, const LayerMemory& memory);
  DeviceLayerCall call_of(std::size_t layer) { return call_of(layer, memory_of(layer)); }
  std::byte* output_gradient_of(std::size_t layer);

  template <class MemoryOf>
  void run_group(const StageLayout::Group& group, const std::byte* input, std::byte* output, MemoryOf memory_of);
  void rebuild_group(const StageLayout::Group& group);
  void fetch_forward(std::size_t layer);
  void fetch_backward(std::size_t layer);
  void take_output_gradient();
  template <class Visit>
  void go_back(Visit visit);
  void complete_layer(std::size_t layer);

  const PassStage stage_;
  CallRecorder& recorder_;
  const DevicePass& pass_;
  const StageSlice& slice_;
  const StageLayout& layout_;
  PassMoves moves_;
};

}}  // namespace plumb::executor
