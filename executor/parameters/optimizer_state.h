#pragma once
// The state that an optimizer keeps of one parameter tensor between steps, and its update.
//
//   AdamW        first_moment, second_moment [n]
//   8-bit AdamW  codes [n bytes] and scales [blocks] of each moment
//   SGD, Lion    momentum [n]
//   Adafactor    row_sums, column_sums; of vectors second_moment [n]

#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/kernels/kernel_set.h"
#include "executor/transport/tensor_pool.h"
#include "kernels/layer.h"
#include "kernels/optimizer.h"
#include "kernels/simt/optimizers/adafactor.h"

namespace plumb { inline namespace executor {

inline constexpr std::int64_t kSingleBytes = sizeof(float);

/// Returns the matrices of a tensor: its last two dimensions, and how many such there are. A vector has none, nor have
/// the biases of experts.
MatrixStackSize matrices_of(const ParameterTensor& tensor);

struct OptimizerField {
  std::string_view name;
  std::int64_t bytes = 0;

  friend bool operator==(const OptimizerField&, const OptimizerField&) = default;
};

/// Returns true if an element's update and state depend on that element alone, with 4 bytes a field. Any range of a
/// tensor can then be updated by itself.
bool is_elementwise(const OptimizerSettings& optimizer);

/// Returns the fields for `elements` of the tensor's elements, which must be all of them unless the optimizer works by
/// element. A stack of matrices (three dimensions) has Adafactor's sums for each matrix.
std::vector<OptimizerField> optimizer_fields(const OptimizerSettings& optimizer, const ParameterTensor& tensor,
                                             std::int64_t elements);

/// Returns tensors as optimizer_fields lists them, with all bytes 0: the state before the first step.
std::vector<Tensor> fresh_state(const OptimizerSettings& optimizer, const ParameterTensor& tensor,
                                std::int64_t elements, TensorPool& pool);

/// Some elements of a parameter tensor and its state, in the precision of the update.
struct ParameterUpdate {
  const ParameterTensor& tensor;
  float* weights = nullptr;    // [elements]
  float* gradients = nullptr;  // [elements]
  std::int64_t elements = 0;
  std::vector<Tensor>& state;
};

/// Applies the update of step `step`, counted from 1, and zeroes the gradients. Weight decay spares one-dimensional
/// tensors. The bias of picks has no state, and is moved by its own rule (ParameterTensor::balance_rate).
void update_parameter(const CpuKernelSet& kernels, const OptimizerSettings& optimizer, const ParameterUpdate& update,
                      std::int64_t step);

}}  // namespace plumb::executor
