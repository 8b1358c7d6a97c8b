// What of a stage's gradients others have a say in before the optimizer's step: its ends of a tied table, and the norm
// and the overflows that all ranks agree on.

#include <algorithm>
#include <cmath>

#include "executor/device/stage/device_stage.h"

namespace plumb {

void DeviceStage::find_tied_tables() {
  const auto set = [&](ModelEnd end, std::size_t layer, std::int64_t first, std::int64_t count) {
    tied_tables_[static_cast<std::size_t>(end)] = {places_.first_element[layer] + first, count};
  };
  const std::size_t last = options_.layers.size() - 1;
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&options_.layers.front()))
    set(ModelEnd::kEmbedding, 0, parameter_offset(*embedding, "tokens.weight"), embedding->vocab * embedding->hidden);
  if (const auto* head = std::get_if<HeadLayer>(&options_.layers.back()))
    set(ModelEnd::kHead, last, parameter_offset(*head, "projection.weight"), head->vocab * head->hidden);
}

/// Copies divide the block as ZeRO does; what other tensor ranks have too is the first one's, and the tied table the
/// embedding's.
void DeviceStage::find_measured() {
  std::vector<ElementRange> others = replicated_elements(places_, model_layers_, options_.tensor, {});
  if (tied_table(ModelEnd::kHead).count > 0) others.push_back(tied_table(ModelEnd::kHead));
  std::ranges::sort(others, {}, &ElementRange::first);
  const ElementRange own = shares_.spoken_for();
  std::int64_t begin = own.first;
  const std::int64_t end = own.first + own.count;
  const auto measure_up_to = [&](std::int64_t to) {
    if (std::min(to, end) > begin) measured_.push_back({begin, std::min(to, end) - begin});
  };
  for (const ElementRange& other : others) {
    measure_up_to(other.first);
    begin = std::max(begin, other.first + other.count);
  }
  measure_up_to(end);
}

void DeviceStage::measure_gradients(DeviceKernels& kernels, float* partials) const {
  const float limit = options_.half == HalfFormat::kFp16 ? kLargestFp16 : INFINITY;  // beyond it one has overflown
  const std::int64_t first = shares_.zero() < 2 ? 0 : shares_.own().first;
  for (const ElementRange& range : measured_) {
    kernels.sum_of_squares(partials, gradients_ + (range.first - first), range.count, limit);
    partials += kGradientPieces;
  }
}

std::int64_t DeviceStage::tied_buffer_bytes() const {
  if (shares_.zero() < 2) return 0;
  return (tied_tables_.front().count + tied_tables_.back().count) * std::int64_t{sizeof(float)};
}

float* DeviceStage::tied_gradients(ModelEnd end) const {
  return shares_.zero() < 2 ? gradients_ + tied_table(end).first : whole_tied_[static_cast<std::size_t>(end)];
}

/// Of the stage's block.
ElementRange DeviceStage::own_of(ElementRange range) const {
  const ElementRange own = shares_.own();
  const std::int64_t first = std::max(range.first, own.first);
  return {first, std::max<std::int64_t>(0, std::min(range.first + range.count, own.first + own.count) - first)};
}

void DeviceStage::gather_tied(CallRecorder& recorder, ModelEnd end) const {
  const ElementRange table = tied_table(end), own = own_of(table);
  if (table.count == 0 || shares_.zero() == 0) return;
  recorder.open_piece();
  if (shares_.zero() >= 2 && own.count > 0)
    recorder.copy(tied_gradients(end) + (own.first - table.first), gradients_ + (own.first - shares_.own().first),
                  own.count * std::int64_t{sizeof(float)});
  for (const DeviceExchange& exchange : shares_.gather_gradients(table, tied_gradients(end)))
    recorder.exchange(exchange);
}

void DeviceStage::finish_tied(DeviceKernels& kernels, ModelEnd end) const {
  const ElementRange table = tied_table(end), own = own_of(table);
  if (shares_.zero() >= 2 && own.count > 0)
    kernels.copy(gradients_ + (own.first - shares_.own().first), tied_gradients(end) + (own.first - table.first),
                 own.count * std::int64_t{sizeof(float)});
}

}  // namespace plumb
