#include "executor/device/device_layer.h"

#include <cassert>
#include <type_traits>
#include <variant>

#include "kernels/simt/attention.h"
#include "kernels/simt/router.h"

namespace plumb {

bool has_device_kernels(const Layer& layer) {
  if (std::holds_alternative<EmbeddingLayer>(layer)) return true;
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return has_kernels(layer) && !block->parallel_residual && block->head_size <= simt::kLargestHead &&
           block->experts_per_token <= simt::kMostPicks;
  return std::holds_alternative<HeadLayer>(layer);
}

std::unique_ptr<DeviceLayer> make_device_layer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes,
                                               const DeviceVocabulary& vocabulary) {
  assert(has_device_kernels(layer));
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer))
    return make_device_embedding(*embedding, work, element_bytes);
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return make_device_transformer(*block, work, element_bytes);
  return make_device_head(std::get<HeadLayer>(layer), work, element_bytes, vocabulary);
}

}  // namespace plumb
