#pragma once
// The memory that a layer takes on a host, by the lives of its tensors: what it keeps for its backward, and the
// temporaries of a pass at their peak.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer/program/program.h"
#include "kernels/layer/recompute.h"

namespace plumb { inline namespace kernels {

/// A tensor that a layer keeps from its forward to its backward, or from its input gradient to its weight gradient.
struct SavedTensor {
  std::string name;           ///< e.g. "attention output"
  std::int64_t elements = 0;  ///< on one rank
  /// It takes 4 bytes an element whatever the computing precision (norm statistics, log-sum-exp, tokens).
  bool single_precision = false;
  /// Its storage is still held after the input gradient is done: the weight gradient reads it, or the gradient that has
  /// taken its place.
  bool needed_by_weight_grad = false;
  /// It is not there before the input gradient: the output's gradient, or a gradient that takes no saved tensor's place
  /// and waits for the weight gradient.
  bool from_input_grad = false;
  bool is_input = false;    ///< it lies where the layer before has handed over its output
  bool recomputed = false;  ///< the forward forgets it, and it is made again

  std::int64_t bytes(std::int64_t element_bytes) const {
    constexpr std::int64_t kWord = 4;
    return elements * (single_precision ? kWord : element_bytes);
  }
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

/// Returns the tensors that a layer saves for its backward, on one rank, if the forward forgets some of them (by kind of
/// recomputation, or any: recomputed.h). forgotten: [tensor]
std::vector<SavedTensor> saved_tensors(const LayerProgram& program, const std::vector<bool>& forgotten);
std::vector<SavedTensor> saved_tensors(const LayerProgram& program, Recompute what = Recompute::kNone);

/// Returns the bytes of the temporaries that a pass holds at its peak, besides the saved tensors, its input and the
/// forward's output. The input's gradient counts as one unless it takes the place of a saved tensor. A kernel's own
/// scratch is not counted.
std::int64_t workspace_bytes(const LayerProgram& program, Pass pass, std::int64_t element_bytes);

}}  // namespace plumb::kernels
