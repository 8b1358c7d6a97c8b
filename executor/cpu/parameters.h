#pragma once
// The parameters of a stage on the CPU: weights and their versions, gradients, the optimizer's moments, and the update.
//
// Each is one block, layer after layer in the order of layer_parameters(). A step updates the newest weights in place,
// unless a micro-batch under way still needs them: then it makes a copy and updates that. A version goes when its last
// micro-batch has gone.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/cpu/kernel_set.h"
#include "executor/tensor_pool.h"
#include "kernels/layer.h"
#include "kernels/optimizer.h"

namespace plumb {

/// A parameter tensor, and the elements [first, first + count) of the stage's blocks that are its own.
struct PlacedParameter {
  std::size_t layer = 0;  ///< in the stage
  ParameterTensor tensor;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Where the parameters of some layers lie in a block.
struct ParameterPlaces {
  std::vector<PlacedParameter> parameters;
  std::vector<std::int64_t> first_element;  ///< [layer], and at the end the elements of the block
};
ParameterPlaces parameter_places(const std::vector<Layer>& layers);

/// [layer in the stage][parameter][element]
using LayerValues = std::vector<std::vector<std::vector<float>>>;

struct CpuParameterOptions {
  std::vector<Layer> layers;
  int first_layer = 0;  ///< its number in the model
  AdamW optimizer;
  std::uint64_t seed = 1;
};

class CpuParameters {
 public:
  /// Initial weights, zero gradients and moments. `pool` outlives the parameters.
  CpuParameters(const CpuParameterOptions& options, TensorPool& pool);

  /// Starts a replay: the newest weights are version 0. `uses[v]` counts the release()s of version v to come.
  void begin(std::vector<int> uses);

  /// A use of a version is over.
  void release(int version);

  /// The layer's share of a version's weights, which is held, and of the gradients.
  const float* weights(int version, std::size_t layer) const;
  float* gradients(std::size_t layer) { return gradients_.data() + places_.first_element[layer]; }

  /// Makes the next version of the weights from the gradients, and zeroes these.
  void step(const CpuKernelSet& kernels);

  std::span<float> all_gradients() { return gradients_.values(); }
  std::span<float> newest_weights() { return versions_.back().weights.values(); }
  int held_versions() const { return static_cast<int>(versions_.size()); }
  LayerValues gradient_values() const { return split_by_parameter(gradients_); }
  LayerValues weight_values() const { return split_by_parameter(versions_.back().weights); }

 private:
  struct Version {
    int number = 0;  // steps since begin()
    Tensor weights;
  };

  bool is_in_use(int version) const;
  LayerValues split_by_parameter(const Tensor& block) const;

  const CpuParameterOptions options_;
  TensorPool& pool_;
  const ParameterPlaces places_;
  std::vector<Version> versions_;  // ascending; the newest last
  std::vector<int> uses_;          // [version] still to be released
  Tensor gradients_;
  Tensor first_moments_;
  Tensor second_moments_;
  std::int64_t updates_ = 0;  // since the beginning, for AdamW's bias correction
};

}  // namespace plumb
