#pragma once
// The division of a layer's heads, channels, experts and vocabulary over ranks (Shoeybi et al. 2019).

#include <algorithm>
#include <cstdint>

#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// Returns the fullest of `parts` equal shares.
constexpr std::int64_t share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

inline std::monostate rank_share(std::monostate none, int /*tensor_parallel*/) {
  return none;
}
inline Mamba2Mixer rank_share(Mamba2Mixer mixer, int tensor_parallel) {
  mixer.heads = share(mixer.heads, tensor_parallel);
  mixer.groups = share(mixer.groups, tensor_parallel);
  return mixer;
}
inline MambaMixer rank_share(MambaMixer mixer, int tensor_parallel) {
  mixer.channels = share(mixer.channels, tensor_parallel);
  return mixer;
}
inline DeltaNetMixer rank_share(DeltaNetMixer mixer, int tensor_parallel) {
  mixer.key_heads = share(mixer.key_heads, tensor_parallel);
  mixer.value_heads = share(mixer.value_heads, tensor_parallel);
  return mixer;
}

/// Return the sizes of a layer on the fullest of the tensor ranks that divide it. A rank has at least one kv head, and
/// all experts of its expert rank.
inline TransformerLayer rank_share(TransformerLayer layer, int tensor_parallel, ExpertDivision experts) {
  if (layer.heads > 0) layer.kv_heads = std::max<std::int64_t>(1, share(layer.kv_heads, tensor_parallel));
  layer.heads = share(layer.heads, tensor_parallel);
  layer.states =
      std::visit([&](const auto& mixer) -> StateMixer { return rank_share(mixer, tensor_parallel); }, layer.states);
  if (layer.experts == 0) layer.ffn = share(layer.ffn, tensor_parallel);
  layer.shared_ffn = share(layer.shared_ffn, tensor_parallel);
  layer.expert_ffn = share(layer.expert_ffn, experts.tensor);
  layer.experts = share(layer.experts, experts.parallel);
  return layer;
}
inline EmbeddingLayer rank_share(EmbeddingLayer layer, int tensor_parallel) {
  layer.vocab = share(layer.vocab, tensor_parallel);
  return layer;
}
inline HeadLayer rank_share(HeadLayer layer, int tensor_parallel) {
  layer.vocab = share(layer.vocab, tensor_parallel);
  return layer;
}

}}  // namespace plumb::kernels
