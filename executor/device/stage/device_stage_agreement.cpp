// What of a stage's gradients others have a say in before the optimizer's step: its ends of a tied table, and the norm
// and the overflows that all ranks agree on.

#include <algorithm>
#include <cmath>

#include "executor/device/stage/device_stage.h"

namespace plumb { inline namespace executor {

void DeviceStage::find_tied_tables() {
  const auto set = [&](ModelEnd end, std::size_t layer, std::int64_t first, std::int64_t count) {
    tied_tables_[static_cast<std::size_t>(end)] = {common().places().first_element[layer] + first, count};
  };
  const std::size_t last = options_.layers.size() - 1;
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&options_.layers.front()))
    set(ModelEnd::kEmbedding, 0, parameter_offset(*embedding, "tokens.weight"), embedding->vocab * embedding->hidden);
  if (const auto* head = std::get_if<HeadLayer>(&options_.layers.back()))
    set(ModelEnd::kHead, last, parameter_offset(*head, "projection.weight"), head->vocab * head->hidden);
}

void DeviceStage::measure_gradients(DeviceKernels& kernels, float* partials) const {
  const float limit = options_.half == HalfFormat::kFp16 ? kLargestFp16 : INFINITY;  // beyond it one has overflown
  for (const ParameterBlock& block : blocks_) {
    block.measure_gradients(kernels, partials, limit);
    partials += block.partial_count();
  }
}

std::int64_t DeviceStage::tied_buffer_bytes() const {
  if (common().shares().zero() < 2) return 0;
  return (tied_tables_.front().count + tied_tables_.back().count) * std::int64_t{sizeof(float)};
}

float* DeviceStage::tied_gradients(ModelEnd end) const {
  return common().shares().zero() < 2 ? common().gradients() + tied_table(end).first
                                      : whole_tied_[static_cast<std::size_t>(end)];
}

/// Of the stage's block.
ElementRange DeviceStage::own_of(ElementRange range) const {
  const ElementRange own = common().shares().own();
  const std::int64_t first = std::max(range.first, own.first);
  return {first, std::max<std::int64_t>(0, std::min(range.first + range.count, own.first + own.count) - first)};
}

void DeviceStage::gather_tied(CallRecorder& recorder, ModelEnd end) const {
  const ElementRange table = tied_table(end), own = own_of(table);
  if (table.count == 0 || common().shares().zero() == 0) return;
  recorder.open_piece();
  if (common().shares().zero() >= 2 && own.count > 0)
    recorder.copy(tied_gradients(end) + (own.first - table.first),
                  common().gradients() + (own.first - common().shares().own().first),
                  own.count * std::int64_t{sizeof(float)});
  for (const DeviceExchange& exchange : common().shares().gather_gradients(table, tied_gradients(end)))
    recorder.exchange(exchange);
}

void DeviceStage::finish_tied(DeviceKernels& kernels, ModelEnd end) const {
  const ElementRange table = tied_table(end), own = own_of(table);
  if (common().shares().zero() >= 2 && own.count > 0)
    kernels.copy(common().gradients() + (own.first - common().shares().own().first),
                 tied_gradients(end) + (own.first - table.first), own.count * std::int64_t{sizeof(float)});
}

}}  // namespace plumb::executor
