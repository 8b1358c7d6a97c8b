#pragma once
// One layer on a device: the kernels that its three passes enqueue, over memory that was planned before. A layer says
// how many bytes it needs of a micro-batch's two buffers (its input gradient frees one, and the other waits for its
// weight gradient) and of workspace; the call says where they lie. Each kind of layer has a file
// (executor/device/layers/*_layer.cpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/device/exchange/device_context_group.h"
#include "executor/device/exchange/device_expert_group.h"
#include "executor/device/exchange/device_tensor_group.h"
#include "executor/device/kernels/device_kernels.h"
#include "executor/device/stage/packed_vectors.h"
#include "executor/division/tensor_division.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// The lifetime of a tensor.
enum class DevicePlace : std::uint8_t {
  kNowhere,
  kEarly,      ///< kept from F to I
  kLate,       ///< kept from F to W
  kCheap,      ///< kept from F to W, or, with selective recomputation, made again by rebuild_cheap()
  kWorkspace,  ///< while a pass runs
  /// From one layer's pass to the next layer's: an input that F alone reads, or a gradient that I alone reads.
  kPassing,
};

struct DeviceTensor {
  DevicePlace place = DevicePlace::kNowhere;
  std::int64_t offset = 0;  ///< bytes from the beginning of the layer's memory
};

/// The bytes that a layer needs.
struct DeviceLayerBytes {
  std::int64_t early = 0;
  std::int64_t late = 0;
  std::int64_t cheap = 0;
  std::int64_t passing = 0;  ///< bytes of the largest such tensor
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;
  std::int64_t sequences = 0;           ///< kept by slices for whole sequences, from the first F to the last I
  std::int64_t sequence_gradients = 0;  ///< kept by slices from the first I on, zeros at first
};

/// A micro-batch at a layer.
struct DeviceLayerCall {
  DeviceKernels& kernels;
  std::byte* early = nullptr;
  std::byte* late = nullptr;
  std::byte* cheap = nullptr;
  std::byte* workspace = nullptr;
  std::byte* passing = nullptr;
  std::byte* sequences = nullptr;       ///< memory of a micro-batch that runs in slices, which all slices share
  float* sequence_gradients = nullptr;  ///< shared by its slices, too
  const std::byte* weights = nullptr;   ///< the layer's parameters, stored, without those of routed experts
  /// The layer's parameters in fp32; with `packed` only the vectors, those of the whole stage.
  const float* vectors = nullptr;
  const PackedVectors* packed = nullptr;
  std::int64_t first_element = 0;  ///< the layer's first element in the stage
  std::int64_t first_packed = 0;   ///< the packed element with which `vectors` begins
  float* gradients = nullptr;      ///< gradients of the layer's parameters
  const std::byte* expert_weights = nullptr;
  float* expert_gradients = nullptr;
  const float* constants = nullptr;  ///< DeviceLayer::constants()
  const std::int32_t* tokens = nullptr;
  const std::int32_t* targets = nullptr;  ///< [T] tokens, or labels of samples
  const std::byte* samples = nullptr;     ///< [T] images or vectors, stored, of a layer that reads them
  const float* sample_targets = nullptr;  ///< [T, width] of a squared error
  float* losses = nullptr;                ///< [T] of a layer that ends the model
  float* balance_losses = nullptr;        ///< [T] of a layer with experts
  float gradient_scale = 1;               ///< 1 / tokens of the batch; for a layer that ends the model
  const float* loss_scale = nullptr;
  DeviceTensorGroup tensor;
  DeviceContextGroup context;
  DeviceExpertGroup experts;
  // Dropout draws its masks from the run's seed, the layer's number in the model and the first sample's in the batch.
  std::uint64_t seed = 1;
  int layer_number = 0;
  std::int64_t first_sample = 0;
  const StepNumbers* numbers = nullptr;  ///< one element
  bool rebuilds_cheap = false;           ///< rebuild_cheap() comes before the backward

  /// Returns a gain or bias by its element in the layer's parameters; null for none (-1).
  const float* vector(std::int64_t element) const {
    if (element < 0) return nullptr;
    return vectors + (packed == nullptr ? element : packed->place_of(first_element + element) - first_packed);
  }
};

class DeviceLayer {
 public:
  virtual ~DeviceLayer() = default;

  virtual DeviceLayerBytes bytes() const = 0;

  /// Returns numbers that the layer reads and that never change.
  virtual std::vector<float> constants() const { return {}; }

  /// Return where the layer takes its input and the gradient of its output [T, h]; kNowhere for the input of a layer
  /// that begins the model, and for the gradient of one that ends it.
  virtual DeviceTensor input() const = 0;
  virtual DeviceTensor output_gradient() const = 0;

  /// output: [T, h]; null for a layer that ends the model.
  virtual void forward(const DeviceLayerCall& call, void* output) const = 0;

  /// Makes what lies in DevicePlace::kCheap again from the other kept tensors: outputs of norms and activations, with
  /// the same bits. It comes before input_grad.
  virtual void rebuild_cheap(const DeviceLayerCall&) const {}

  /// input_gradient: [T, h]; null for a layer that begins the model. It adds the gradients of norms to the layer's.
  virtual void input_grad(const DeviceLayerCall& call, void* input_gradient) const = 0;

  /// Adds the other gradients. It comes after input_grad.
  virtual void weight_grad(const DeviceLayerCall& call) const = 0;
};

/// The share of a layer, and of its sequences, on this rank.
struct DeviceTensorShare {
  int ranks = 1;
  int rank = 0;
  std::int64_t whole_vocabulary = 0;  ///< the vocabulary of a head's ranks together, without padding
  int kv_sharers = 1;                 ///< number of neighbouring ranks that have the same kv heads
  ContextSeat context;                ///< seat in the context group, whose ranks have some tokens of each sequence
  ExpertSeat experts;                 ///< seat in the expert group, whose ranks have some experts each
  std::int64_t sequence = 0;          ///< s: tokens of the context group's sequences
  TokenRange slice;                   ///< tokens of this slice; all tokens where sequences are whole
  int slices = 1;                     ///< slices of each sequence
  int slice_number = 0;               ///< number of this slice

  bool is_sliced() const { return slice.count < sequence; }
  /// Returns the tokens of a whole sequence; `work` has those on this rank.
  std::int64_t whole_sequence(const LayerWork& work) const {
    return is_sliced() ? sequence : work.sequence * context.ranks;
  }
};

/// Returns the rows that a rank of a tensor group has between products: T, or T/t with sequence parallelism.
inline std::int64_t own_rows_of(const LayerWork& work) {
  return work.sequence_parallel ? tokens_of(work) / work.tensor_parallel : tokens_of(work);
}

/// True if a device runs the layer. It does not run blocks with latent attention, heads of more than 256 channels or
/// more than 32 experts a token.
bool has_device_kernels(const Layer& layer);

/// Makes the layer. `layer` is the share of a tensor rank. Asserts has_device_kernels().
std::unique_ptr<DeviceLayer> make_device_layer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes,
                                               const DeviceTensorShare& share = {});

std::unique_ptr<DeviceLayer> make_device_embedding(const EmbeddingLayer& layer, const LayerWork& work,
                                                   std::int64_t element_bytes, const DeviceTensorShare& share);
std::unique_ptr<DeviceLayer> make_device_transformer(const TransformerLayer& layer, const LayerWork& work,
                                                     std::int64_t element_bytes, const DeviceTensorShare& share);
std::unique_ptr<DeviceLayer> make_device_head(const HeadLayer& layer, const LayerWork& work, std::int64_t element_bytes,
                                              const DeviceTensorShare& share);

/// Places `bytes` behind those that are counted in `total`.
inline DeviceTensor place_tensor(DevicePlace place, std::int64_t& total, std::int64_t bytes) {
  const DeviceTensor tensor{place, total};
  total += aligned_bytes(bytes);
  return tensor;
}

/// Places a tensor that passes to the next layer; layers use one of two places in turn.
inline DeviceTensor place_passing(DeviceLayerBytes& layer, std::int64_t bytes) {
  layer.passing = std::max(layer.passing, aligned_bytes(bytes));
  return {.place = DevicePlace::kPassing};
}

/// Returns the tensor's address in this call; null if it is nowhere.
inline std::byte* address_of(const DeviceLayerCall& call, DeviceTensor tensor) {
  switch (tensor.place) {
    case DevicePlace::kEarly:
      return call.early + tensor.offset;
    case DevicePlace::kLate:
      return call.late + tensor.offset;
    case DevicePlace::kCheap:
      return call.cheap + tensor.offset;
    case DevicePlace::kWorkspace:
      return call.workspace + tensor.offset;
    case DevicePlace::kPassing:
      return call.passing;
    case DevicePlace::kNowhere:
      break;
  }
  return nullptr;
}
inline std::int32_t* integers_of(const DeviceLayerCall& call, DeviceTensor tensor) {
  return reinterpret_cast<std::int32_t*>(address_of(call, tensor));
}
inline float* floats_of(const DeviceLayerCall& call, DeviceTensor tensor) {
  return reinterpret_cast<float*>(address_of(call, tensor));
}

/// Returns the key of the layer's dropout number `place` (executor/cpu/layers/layer.h, dropout_site).
inline DropoutKey dropout_key(const DeviceLayerCall& call, std::uint64_t place) {
  return {.seed = call.seed, .layer = static_cast<std::uint64_t>(call.layer_number), .place = place};
}

/// y = residual + dropout of x, for own rows of `columns` channels; a null residual counts as zeros. The rows may begin
/// and end inside a sample.
void drop_rows(const DeviceLayerCall& call, std::uint64_t place, std::byte* y, const std::byte* x,
               const std::byte* residual, const LayerWork& work, std::int64_t columns, double probability,
               std::int64_t element_bytes);

}}  // namespace plumb::executor
