#include "executor/device/layers/expert_exchange.h"

#include <algorithm>

#include "kernels/layer/expert_rows.h"

namespace plumb { inline namespace executor {
DeviceExpertExchange::DeviceExpertExchange(const TransformerLayer& layer, const LayerWork& work,
                                           const DeviceTensorShare& share, std::int64_t element_bytes,
                                           DeviceLayerBytes& bytes, std::int64_t& backward)
    : tokens_(tokens_of(work)),
      picks_(layer.experts_per_token),
      hidden_(layer.hidden),
      element_bytes_(element_bytes),
      blocks_{
          .ranks = share.experts.ranks,
          .experts = layer.experts / std::max(1, share.experts.ranks),
          .rows = most_rows_to_expert_rank(
              layer, {.sequences = work.microbatch, .tokens = work.sequence, .sequence = share.whole_sequence(work)},
              share.experts.ranks)} {
  constexpr std::int64_t kWord = sizeof(float);
  const std::int64_t row_bytes = hidden_ * element_bytes;
  const auto workspace = [](std::int64_t& total, std::int64_t all) {
    return place_tensor(DevicePlace::kWorkspace, total, all);
  };
  rows_[0] = workspace(bytes.forward_workspace, rows() * row_bytes);
  rows_[1] = workspace(backward, rows() * row_bytes);
  if (!is_spread()) return;
  received_ = place_tensor(DevicePlace::kEarly, bytes.early, rows() * kWord);
  bounds_ = place_tensor(DevicePlace::kLate, bytes.late, (blocks_.experts + 1) * kWord);
  counts_ = workspace(bytes.forward_workspace, 2 * layer.experts * kWord);
  other_rows_[0] = workspace(bytes.forward_workspace, rows() * row_bytes);
  other_rows_[1] = workspace(backward, rows() * row_bytes);
  words_ = workspace(backward, rows() * kWord);
  received_words_ = workspace(backward, rows() * kWord);
}

void DeviceExpertExchange::share_routes(const DeviceLayerCall& call, const DeviceRoutes& routes) const {
  if (!is_spread()) return;
  std::int32_t* const sent = integers_of(call, counts_);
  std::int32_t* const received = sent + blocks_.all_experts();
  call.kernels.place_in_blocks(routes, sent, tokens_ * picks_, blocks_);
  call.experts.all_to_all_words(received, sent, blocks_.all_experts());
  call.kernels.place_received(integers_of(call, received_), integers_of(call, bounds_), received, blocks_);
}

ExpertRows DeviceExpertExchange::expert_rows(const DeviceLayerCall& call, const std::int32_t* bounds) const {
  return {.bounds = is_spread() ? integers_of(call, bounds_) : bounds, .rows = rows(), .experts = blocks_.experts};
}

void DeviceExpertExchange::to_experts(const DeviceLayerCall& call, bool is_backward, void* by_expert, const void* rows,
                                      const std::int32_t* places) const {
  DeviceKernels& kernels = call.kernels;
  if (!is_spread()) return kernels.place_rows(by_expert, rows, places, copy_size());
  std::byte* const sent = address_of(call, rows_[is_backward ? 1 : 0]);
  std::byte* const incoming = address_of(call, other_rows_[is_backward ? 1 : 0]);
  kernels.place_rows(sent, rows, places, copy_size());
  call.experts.all_to_all(incoming, sent, blocks_.all_rows() * hidden_, element_bytes_);
  kernels.place_rows(by_expert, incoming, integers_of(call, received_), received_size());
}

std::byte* DeviceExpertExchange::experts_output(const DeviceLayerCall& call, bool is_backward) const {
  return address_of(call, rows_[is_backward ? 1 : 0]);
}

/// The rows that come back replace the experts' output, which is sent from other memory.
void DeviceExpertExchange::from_experts(const DeviceLayerCall& call, bool is_backward) const {
  if (!is_spread()) return;
  std::byte* const by_expert = experts_output(call, is_backward);
  std::byte* const outgoing = address_of(call, other_rows_[is_backward ? 1 : 0]);
  call.kernels.sum_placed_rows(outgoing, by_expert, integers_of(call, received_), nullptr, received_size());
  call.experts.all_to_all(by_expert, outgoing, blocks_.all_rows() * hidden_, element_bytes_);
}

DeviceRoutes DeviceExpertExchange::send_weights(const DeviceLayerCall& call, const DeviceRoutes& routes) const {
  if (!is_spread()) return routes;
  float* const received = floats_of(call, received_words_);
  call.kernels.place_singles(floats_of(call, words_), routes.weights, routes.places, tokens_ * picks_);
  call.experts.all_to_all_words(received, floats_of(call, words_), rows());
  return {.weights = received, .places = integers_of(call, received_)};
}

float* DeviceExpertExchange::weight_gradients(const DeviceLayerCall& call, float* of_picks) const {
  return is_spread() ? floats_of(call, words_) : of_picks;
}

void DeviceExpertExchange::return_weight_gradients(const DeviceLayerCall& call, float* of_picks,
                                                   const std::int32_t* places) const {
  if (!is_spread()) return;
  call.experts.all_to_all_words(floats_of(call, received_words_), floats_of(call, words_), rows());
  call.kernels.take_singles(of_picks, floats_of(call, received_words_), places, tokens_ * picks_);
}

}}  // namespace plumb::executor
