#pragma once
// A layer's program on the CPU (kernels/layer/program/program.h), with the storages of its tensors: which are kept
// between passes, and behind which step each is let go.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace executor {

class HostProgram {
 public:
  /// `work` is that of the layer's groups together.
  HostProgram(const Layer& layer, const LayerWork& work);

  const Layer& layer() const { return layer_; }  ///< whole
  const Layer& share() const { return share_; }  ///< of a tensor rank; it counts all experts
  const LayerWork& work() const { return work_; }
  const LayerProgram& steps() const { return program_; }
  const LayerTensor& tensor(int tensor) const { return program_.tensors[static_cast<std::size_t>(tensor)]; }

  std::size_t storages() const { return ends_.size(); }
  /// Returns the storage of a tensor.
  std::size_t storage_of(int tensor) const { return storage_of_[static_cast<std::size_t>(tensor)]; }
  /// Returns the last step, by its position in the program, that uses a storage.
  int last_step(std::size_t storage) const { return ends_[storage]; }

  /// Return storages that hold values between passes; those of these that cheap steps make again; and those of numbers,
  /// which are stored in 16 bits where activations are.
  const std::vector<std::size_t>& kept() const { return kept_; }
  const std::vector<std::size_t>& cheap() const { return cheap_; }
  const std::vector<std::size_t>& numbers() const { return numbers_; }

  /// True if the forward replaces its input.
  bool overwrites_input() const { return overwrites_input_; }
  /// True if the storage is handed on when the pass ends: the output, or the input's gradient.
  bool is_handed(std::size_t storage, Pass pass) const;

  bool is_of_experts(int parameter) const { return program_.parameters[static_cast<std::size_t>(parameter)].expert; }
  /// Returns the parameter's first element among the layer's parameters, or among those of its routed experts.
  std::int64_t first_element(int parameter) const { return first_elements_[static_cast<std::size_t>(parameter)]; }

 private:
  Layer layer_, share_;
  LayerWork work_;
  LayerProgram program_;
  std::vector<std::size_t> storage_of_;  // [tensor]
  std::vector<int> ends_;                // [storage] last step
  std::vector<std::size_t> kept_, cheap_, numbers_;
  bool overwrites_input_ = false;
  std::vector<std::int64_t> first_elements_;  // [parameter]
};

}}  // namespace plumb::executor
