#include "executor/device/layers/device_layer.h"

#include <algorithm>
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
                                               const DeviceTensorShare& share) {
  assert(has_device_kernels(layer));
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer))
    return make_device_embedding(*embedding, work, element_bytes);
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return make_device_transformer(*block, work, element_bytes, share);
  return make_device_head(std::get<HeadLayer>(layer), work, element_bytes, share);
}

void drop_rows(const DeviceLayerCall& call, std::uint64_t place, std::byte* y, const std::byte* x,
               const std::byte* residual, const LayerWork& work, std::int64_t columns, double probability,
               std::int64_t element_bytes) {
  const auto drop = [&](std::int64_t row, const DropoutRows& rows) {
    const std::int64_t at = row * columns * element_bytes;
    call.kernels.dropout(y + at, x + at, residual == nullptr ? nullptr : residual + at, dropout_key(call, place), rows,
                         probability, call.numbers);
  };
  if (!call.tensor.divides_rows)
    return drop(
        0, {.first_sample = call.first_sample, .count = work.microbatch, .tokens = work.sequence, .columns = columns});
  const std::int64_t own = own_rows_of(work), first = call.tensor.rank() * own,
                     each = std::max<std::int64_t>(1, work.sequence);
  for (std::int64_t row = first; row < first + own;) {
    const std::int64_t token = row % each, count = std::min(each - token, first + own - row);
    drop(row - first, {.first_sample = call.first_sample + row / each,
                       .count = 1,
                       .first_token = token,
                       .tokens = count,
                       .columns = columns});
    row += count;
  }
}

}  // namespace plumb
