#pragma once
// Activations in 16 bits (Micikevicius et al. 2018). Activations that wait between passes, layers and stages are stored
// in 16 bits and widened for their use, so that kernels compute in fp32 on rounded numbers.

#include "executor/layers/host/layer.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

/// Returns the numbers of `wide` in 16 bits, 2 bytes each; empty for an empty tensor.
Tensor narrowed(TensorPool& pool, const Tensor& wide, HalfFormat format);

/// Returns the first `elements` numbers of `narrow` in fp32.
Tensor widened(TensorPool& pool, const Tensor& narrow, std::int64_t elements, HalfFormat format);

/// Rounds every number to the nearest one of 16 bits, in place.
void round_to_half(Tensor& wide, HalfFormat format);

/// Store the tensors of LayerSaved::narrowable() in 16 bits, unless they are already, and widen them again.
void narrow_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format);
void widen_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format);

}}  // namespace plumb::executor
