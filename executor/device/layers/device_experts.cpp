#include "executor/device/layers/device_experts.h"

#include <algorithm>
#include <string>

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {
DeviceExperts::DeviceExperts(const TransformerLayer& layer, const LayerWork& work, const DeviceTensorShare& share,
                             std::int64_t element_bytes, DeviceLayerBytes& bytes)
    : layer_(layer),
      expert_(with_ffn(layer, layer.expert_ffn)),
      shared_(with_ffn(layer, layer.shared_ffn)),
      tokens_(tokens_of(work)),
      element_bytes_(element_bytes),
      matrices_(up_products(layer)),
      routing_{.sequences = work.microbatch,
               .sequence = work.sequence,
               .experts = layer.experts,
               .picks = layer.experts_per_token,
               .capacity = expert_capacity(layer, share.whole_sequence(work))},
      shared_picks_{.own = routing_,
                    .members = share.context.ranks,
                    .member = share.context.rank,
                    .is_zigzag = share.context.attention == ContextAttention::kRing},
      whole_sequence_(share.whole_sequence(work)),
      slices_(share.is_sliced() ? share.slices : 1),
      slice_(share.slice_number) {
  const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
  router_ = parameter_offset(layer, "router.weight");
  up_at_ = parameter_offset(layer, "experts." + up + ".weight", share.experts.ranks);
  down_at_ = parameter_offset(layer, "experts.down.weight", share.experts.ranks);
  shared_up_at_ = parameter_offset(layer, "shared." + up + ".weight");
  shared_down_at_ = parameter_offset(layer, "shared.down.weight");

  const auto workspace = [](std::int64_t& total, std::int64_t all) {
    return place_tensor(DevicePlace::kWorkspace, total, all);
  };
  constexpr std::int64_t kWord = sizeof(float);
  const std::int64_t h = layer.hidden, own = picked(), lists = work.microbatch * layer.experts;
  weight_gradients_ = workspace(bytes.backward_workspace, own * kWord);
  added_ = workspace(bytes.backward_workspace, lists * kWord);
  // The experts' rows are not used any more when the router and the shared expert begin.
  std::int64_t of_rows = bytes.backward_workspace, of_tokens = bytes.backward_workspace;
  exchange_.emplace(layer, work, share, element_bytes, bytes, of_rows);
  activated_gradient_ = workspace(of_rows, rows() * layer.expert_ffn * element_bytes);
  part_ = workspace(of_tokens, tokens_ * h * element_bytes);
  shared_gradient_ = workspace(of_tokens, tokens_ * layer.shared_ffn * element_bytes);
  bytes.backward_workspace = std::max(of_rows, of_tokens);
  if (share.context.ranks > 1)
    whole_picks_ =
        workspace(bytes.forward_workspace, (3 * share.context.ranks * own + own + layer.experts + 1 + lists) * kWord);
  if (layer.shared_ffn > 0) shared_output_ = workspace(bytes.forward_workspace, tokens_ * h * element_bytes);

  const auto early = [&](std::int64_t words) { return place_tensor(DevicePlace::kEarly, bytes.early, words * kWord); };
  const auto late = [&](std::int64_t all) { return place_tensor(DevicePlace::kLate, bytes.late, all); };
  const auto cheap = [&](std::int64_t elements) {
    return place_tensor(DevicePlace::kCheap, bytes.cheap, elements * element_bytes);
  };
  picks_ = early(own);
  weights_ = early(own);
  places_ = early(own);
  loads_ = early(lists);
  if (is_sliced()) {
    loads_at_ = bytes.sequences;
    bytes.sequences += aligned_bytes(slices_ * lists * kWord);
  }
  probabilities_ = late(tokens_ * layer.experts * kWord);
  bounds_ = late((layer.experts + 1) * kWord);
  input_ = late(rows() * h * element_bytes);
  up_ = late(rows() * width() * element_bytes);
  output_gradient_ = late(rows() * h * element_bytes);
  activated_ = cheap(rows() * layer.expert_ffn);
  if (layer.shared_ffn > 0) {
    shared_up_ = late(tokens_ * shared_width() * element_bytes);
    shared_activated_ = cheap(tokens_ * layer.shared_ffn);
  }
}

std::int32_t* DeviceExperts::slice_loads(const DeviceLayerCall& call, int slice) const {
  return reinterpret_cast<std::int32_t*>(call.sequences + loads_at_) + slice * lists();
}

DeviceRoutes DeviceExperts::routes(const DeviceLayerCall& call) const {
  return {.picks = integers_of(call, picks_),
          .weights = floats_of(call, weights_),
          .places = integers_of(call, places_),
          .bounds = integers_of(call, bounds_),
          .loads = integers_of(call, loads_)};
}

ExpertRows DeviceExperts::expert_rows(const DeviceLayerCall& call) const {
  return exchange_->expert_rows(call, integers_of(call, bounds_));
}

/// Routes the picks; an expert takes the first picks of a whole sequence.
void DeviceExperts::route(const DeviceLayerCall& call) const {
  DeviceKernels& kernels = call.kernels;
  DeviceRoutes to = routes(call);
  if (is_sliced()) {
    if (slice_ > 0) kernels.sum_loads(to.loads, slice_loads(call, 0), slice_, lists());
    to.before = slice_ > 0 ? to.loads : nullptr;
    to.loads = slice_loads(call, slice_);
  }
  if (!call.context.is_shared())
    return kernels.route(floats_of(call, probabilities_), to, routing_, layer_.renormalised);
  kernels.pick(floats_of(call, probabilities_), to, routing_, layer_.renormalised);
  const std::int64_t own = picked(), all = shared_picks_.members * own;
  SharedPickRoom room{.gathered = integers_of(call, whole_picks_)};
  room.whole = room.gathered + all;
  room.whole_places = room.whole + all;
  room.kept = room.whole_places + all;
  room.whole_bounds = room.kept + own;
  room.kept_loads = room.whole_bounds + layer_.experts + 1;
  kernels.copy(room.gathered + shared_picks_.member * own, to.picks, own * std::int64_t{sizeof(std::int32_t)});
  call.context.gather_words(floats_of(call, whole_picks_), all);
  kernels.place_shared_picks(to, room, shared_picks_);
}

void DeviceExperts::forward(const DeviceLayerCall& call, void* output, const void* input) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const DeviceRoutes to = routes(call);
  const ExpertRows rows = expert_rows(call);
  kernels.router_scores(floats_of(call, probabilities_), input, weight(call, router_), router_product());
  route(call);
  exchange_->share_routes(call, to);
  exchange_->to_experts(call, false, at(input_), input, to.places);
  kernels.experts_forward(at(up_), at(input_), expert_weight(call, up_at_), rows, width(), h);
  if (layer_.shared_ffn > 0)
    kernels.linear_forward(at(shared_up_), input, weight(call, shared_up_at_), {tokens_, shared_width(), h});
  activate(call);
  std::byte* const made = exchange_->experts_output(call, false);
  kernels.experts_forward(made, at(activated_), expert_weight(call, down_at_), rows, h, layer_.expert_ffn);
  exchange_->from_experts(call, false);
  kernels.sum_placed_rows(output, made, to.places, to.weights, copy_size());
  if (layer_.shared_ffn == 0) return;
  kernels.linear_forward(at(shared_output_), at(shared_activated_), weight(call, shared_down_at_),
                         {tokens_, h, layer_.shared_ffn});
  kernels.residual_add(output, output, at(shared_output_), nullptr, tokens_, h);
}

/// Works on all rows. A row without a pick holds old values, and nothing reads the result.
void DeviceExperts::activate(const DeviceLayerCall& call) const {
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  call.kernels.activation_forward(expert_, at(activated_), at(up_), rows());
  if (layer_.shared_ffn > 0) call.kernels.activation_forward(shared_, at(shared_activated_), at(shared_up_), tokens_);
}

void DeviceExperts::input_grad(const DeviceLayerCall& call, void* dinput, const void* output_gradient) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden, ffn = layer_.expert_ffn;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const DeviceRoutes to = routes(call);
  const ExpertRows rows = expert_rows(call);
  const DeviceRoutes weighed = exchange_->send_weights(call, to);
  float* const weight_gradients = floats_of(call, weight_gradients_);
  exchange_->to_experts(call, true, at(output_gradient_), output_gradient, to.places);
  kernels.experts_input_grad(at(activated_gradient_), at(output_gradient_), expert_weight(call, down_at_), rows, ffn,
                             h);
  kernels.weigh_picks(exchange_->weight_gradients(call, weight_gradients), at(activated_gradient_),
                      at(output_gradient_), at(activated_), weighed, {rows.rows, ffn, h});
  kernels.activation_backward(expert_, at(up_), at(activated_gradient_), rows.rows);
  std::byte* const made = exchange_->experts_output(call, true);
  kernels.experts_input_grad(made, at(up_), expert_weight(call, up_at_), rows, h, width());
  exchange_->from_experts(call, true);
  kernels.sum_placed_rows(dinput, made, to.places, nullptr, copy_size());
  exchange_->return_weight_gradients(call, weight_gradients, to.places);
  call.tensor.sum_singles(weight_gradients, picked());
  router_input_grad(call, dinput);
  if (layer_.shared_ffn > 0) shared_input_grad(call, dinput, output_gradient);
}

void DeviceExperts::router_input_grad(const DeviceLayerCall& call, void* dinput) const {
  DeviceKernels& kernels = call.kernels;
  float* probabilities = floats_of(call, probabilities_);
  const DeviceRoutes to = routes(call);
  float* added = nullptr;
  if (layer_.balance_loss > 0) {
    added = floats_of(call, added_);
    const double share = static_cast<double>(layer_.experts) / static_cast<double>(whole_sequence_ * routing_.picks);
    if (is_sliced()) kernels.sum_loads(to.loads, slice_loads(call, 0), slices_, lists());
    kernels.balance_loss(call.balance_losses, added, probabilities, to, routing_,
                         {.scale = static_cast<float>(layer_.balance_loss * share),
                          .gradient_scale = call.gradient_scale,
                          .loss_scale = call.loss_scale});
  }
  kernels.route_backward(probabilities, floats_of(call, weight_gradients_), to, routing_, layer_.renormalised, added);
  if (call.tensor.rank() > 0) return;
  std::byte* const part = address_of(call, part_);
  kernels.router_input_grad(part, probabilities, weight(call, router_), router_product());
  kernels.residual_add(dinput, dinput, part, nullptr, tokens_, layer_.hidden);
}

void DeviceExperts::shared_input_grad(const DeviceLayerCall& call, void* dinput, const void* output_gradient) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  kernels.linear_input_grad(at(shared_gradient_), output_gradient, weight(call, shared_down_at_),
                            {tokens_, layer_.shared_ffn, h});
  kernels.activation_backward(shared_, at(shared_up_), at(shared_gradient_), tokens_);
  kernels.linear_input_grad(at(part_), at(shared_up_), weight(call, shared_up_at_), {tokens_, h, shared_width()});
  kernels.residual_add(dinput, dinput, at(part_), nullptr, tokens_, h);
}

void DeviceExperts::weight_grad(const DeviceLayerCall& call, const void* output_gradient, const void* input) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const ExpertRows rows = expert_rows(call);
  kernels.experts_weight_grad(call.expert_gradients + down_at_, at(output_gradient_), at(activated_), rows, h,
                              layer_.expert_ffn);
  kernels.experts_weight_grad(call.expert_gradients + up_at_, at(up_), at(input_), rows, width(), h);
  kernels.router_weight_grad(call.gradients + router_, floats_of(call, probabilities_), input, router_product());
  if (layer_.shared_ffn == 0) return;
  kernels.linear_weight_grad(call.gradients + shared_down_at_, output_gradient, at(shared_activated_),
                             {h, layer_.shared_ffn, tokens_});
  kernels.linear_weight_grad(call.gradients + shared_up_at_, at(shared_up_), input, {shared_width(), h, tokens_});
}

}}  // namespace plumb::executor
