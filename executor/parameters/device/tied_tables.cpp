#include "executor/parameters/device/tied_tables.h"

#include <variant>

#include "executor/machines/device_values.h"

namespace plumb { inline namespace executor {
namespace {

bool has_share(const ParameterBlock& common) {
  return common.layout().shares().zero() >= 2;
}

/// Address of own gradients, in those that a block with a share holds.
float* own_share(const ParameterBlock& common, ElementRange own) {
  return common.gradients() + (own.first - common.layout().own().first);
}

}  // namespace

TiedTables::TiedTables(const std::vector<Layer>& layers, const ParameterBlock& common) {
  const auto set = [&](ModelEnd end, std::size_t layer, std::int64_t first, std::int64_t count) {
    tables_[static_cast<std::size_t>(end)] = {common.layout().places().first_element[layer] + first, count};
  };
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layers.front()))
    set(ModelEnd::kEmbedding, 0, parameter_offset(*embedding, "tokens.weight"), embedding->vocab * embedding->hidden);
  if (const auto* head = std::get_if<HeadLayer>(&layers.back()))
    set(ModelEnd::kHead, layers.size() - 1, parameter_offset(*head, "projection.weight"), head->vocab * head->hidden);
}

std::int64_t TiedTables::buffer_bytes(const ParameterBlock& common) const {
  if (!has_share(common)) return 0;
  return (tables_.front().count + tables_.back().count) * std::int64_t{sizeof(float)};
}

void TiedTables::allocate(DeviceMachine& machine, const ParameterBlock& common) {
  for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead})
    if (const std::int64_t count = table(end).count; count > 0 && has_share(common))
      whole_[static_cast<std::size_t>(end)] = allocate_elements<float>(machine, count);
}

float* TiedTables::gradients(const ParameterBlock& common, ModelEnd end) const {
  return has_share(common) ? whole_[static_cast<std::size_t>(end)] : common.gradients() + table(end).first;
}

void TiedTables::gather(CallRecorder& recorder, const ParameterBlock& common, ModelEnd end) const {
  const ElementRange whole = table(end), own = common.layout().own_in(whole);
  if (whole.count == 0 || common.layout().shares().zero() == 0) return;
  recorder.open_piece();
  float* const values = gradients(common, end);
  if (has_share(common) && own.count > 0)
    recorder.copy(values + (own.first - whole.first), own_share(common, own), own.count * std::int64_t{sizeof(float)});
  for (const DeviceExchange& exchange : common.layout().shares().gather_gradients(whole, values))
    recorder.exchange(exchange);
}

void TiedTables::finish(DeviceKernels& kernels, const ParameterBlock& common, ModelEnd end) const {
  const ElementRange whole = table(end), own = common.layout().own_in(whole);
  if (has_share(common) && own.count > 0)
    kernels.copy(own_share(common, own), gradients(common, end) + (own.first - whole.first),
                 own.count * std::int64_t{sizeof(float)});
}

}}  // namespace plumb::executor
