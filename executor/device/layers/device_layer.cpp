#include "executor/device/layers/device_layer.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <variant>

#include "executor/device/layers/program_layer.h"
#include "kernels/simt/attention/attention.h"
#include "kernels/simt/experts/router.h"

namespace plumb { inline namespace executor {

namespace {

struct DeviceLayerMaker {
  const LayerWork& work;
  std::int64_t element_bytes;
  const DeviceTensorShare& share;

  using Made = std::unique_ptr<DeviceLayer>;
  Made operator()(const EmbeddingLayer& layer) const {
    return make_device_embedding(layer, work, element_bytes, share);
  }
  Made operator()(const TransformerLayer& layer) const {
    return make_device_transformer(layer, work, element_bytes, share);
  }
  Made operator()(const HeadLayer& layer) const { return make_device_head(layer, work, element_bytes, share); }
  template <class OfImagesOrVectors>
  Made operator()(const OfImagesOrVectors& layer) const {
    return make_program_layer(layer, work, element_bytes);
  }
};

}  // namespace

bool has_device_kernels(const Layer& layer) {
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return has_kernels(layer) && block->head_size <= simt::kLargestHead && block->experts_per_token <= simt::kMostPicks;
  return true;
}

std::unique_ptr<DeviceLayer> make_device_layer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes,
                                               const DeviceTensorShare& share) {
  assert(has_device_kernels(layer));
  return std::visit(DeviceLayerMaker{work, element_bytes, share}, layer);
}

void drop_rows(const DeviceLayerCall& call, std::uint64_t place, std::byte* y, const std::byte* x,
               const std::byte* residual, const LayerWork& work, std::int64_t columns, double probability,
               std::int64_t element_bytes) {
  const auto drop = [&](std::int64_t row, const DropoutRows& rows) {
    const std::int64_t at = row * columns * element_bytes;
    call.kernels.dropout(y + at, x + at, residual == nullptr ? nullptr : residual + at, dropout_key(call, place), rows,
                         probability, call.numbers);
  };
  const ContextTokens& tokens = call.context.tokens;
  if (!call.tensor.divides_rows && tokens.second.count == 0)
    return drop(0, {.first_sample = call.first_sample,
                    .count = work.microbatch,
                    .first_token = tokens.first.first,
                    .tokens = work.sequence,
                    .columns = columns});
  const std::int64_t own = own_rows_of(work), first = call.tensor.divides_rows ? call.tensor.rank() * own : 0;
  std::int64_t row = 0;  // first row of the run, among all rows
  for (std::int64_t sample = 0; sample < work.microbatch; ++sample)
    for (const TokenRange& run : {tokens.first, tokens.second}) {
      const std::int64_t begin = std::clamp<std::int64_t>(first - row, 0, run.count);
      const std::int64_t end = std::clamp<std::int64_t>(first + own - row, begin, run.count);
      if (begin < end)
        drop(row + begin - first, {.first_sample = call.first_sample + sample,
                                   .count = 1,
                                   .first_token = run.first + begin,
                                   .tokens = end - begin,
                                   .columns = columns});
      row += run.count;
    }
}

}}  // namespace plumb::executor
