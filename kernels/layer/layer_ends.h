#pragma once
// The rows that a layer takes from the layer before and hands to the layer behind.

#include <cstdint>

#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"
#include "kernels/layer/rank_share.h"

namespace plumb { inline namespace kernels {

/// Returns T, the tokens (or samples) of a micro-batch on one rank.
inline std::int64_t tokens_in(const LayerWork& work) {
  return work.microbatch * (work.sequence / work.context_parallel);
}

/// Returns R, the rows that a rank has between layers, and on which norms, residuals and output biases work.
inline std::int64_t own_rows_in(const LayerWork& work) {
  return work.sequence_parallel ? share(tokens_in(work), work.tensor_parallel) : tokens_in(work);
}

/// Rows and columns of a layer's input or output; 0 columns: a layer that begins or ends a model.
struct LayerEnds {
  std::int64_t taken = 0;   ///< columns of a row of the input
  std::int64_t handed = 0;  ///< columns of a row of the output
};

/// Returns the ends of a kind that adds to a stream of `hidden` channels; the other kinds follow.
template <class Kind>
LayerEnds ends_of(const Kind& layer) {
  return {.taken = layer.hidden, .handed = layer.hidden};
}
inline LayerEnds ends_of(const EmbeddingLayer& layer) {
  return {.handed = layer.hidden};
}
inline LayerEnds ends_of(const HeadLayer& layer) {
  return {.taken = layer.hidden};
}
inline LayerEnds ends_of(const InputLayer& layer) {
  return {.handed = layer.height * layer.width * layer.channels};
}
inline LayerEnds ends_of(const ConvolutionLayer& layer) {
  return {.taken = layer.height * layer.width * layer.channels,
          .handed = windows_in(layer.height, layer.kernel, layer.stride, layer.padding) *
                    windows_in(layer.width, layer.kernel, layer.stride, layer.padding) * layer.filters};
}
inline LayerEnds ends_of(const PoolingLayer& layer) {
  return {.taken = layer.height * layer.width * layer.channels,
          .handed = windows_in(layer.height, layer.kernel, layer.stride) *
                    windows_in(layer.width, layer.kernel, layer.stride) * layer.channels};
}
inline LayerEnds ends_of(const LinearLayer& layer) {
  return {.taken = layer.in, .handed = layer.out};
}
inline LayerEnds ends_of(const LossLayer& layer) {
  return {.taken = layer.width};
}

}}  // namespace plumb::kernels
