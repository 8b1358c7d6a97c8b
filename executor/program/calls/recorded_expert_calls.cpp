// Kernels of a mixture of experts, recorded.

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

void CallRecorder::router_scores(float* scores, const void* x, const void* weight, const RouterProduct& size) {
  add([=](DeviceKernels& kernels) { kernels.router_scores(scores, x, weight, size); });
}

void CallRecorder::router_input_grad(void* dx, const float* dscores, const void* weight, const RouterProduct& size) {
  add([=](DeviceKernels& kernels) { kernels.router_input_grad(dx, dscores, weight, size); });
}

void CallRecorder::router_weight_grad(float* dweight, const float* dscores, const void* x, const RouterProduct& size) {
  add([=](DeviceKernels& kernels) { kernels.router_weight_grad(dweight, dscores, x, size); });
}

void CallRecorder::router_bias_forward(float* scores, const float* bias, std::int64_t tokens, std::int64_t experts) {
  add([=](DeviceKernels& kernels) { kernels.router_bias_forward(scores, bias, tokens, experts); });
}

void CallRecorder::router_bias_backward(float* dbias, const float* dscores, std::int64_t tokens, std::int64_t experts) {
  add([=](DeviceKernels& kernels) { kernels.router_bias_backward(dbias, dscores, tokens, experts); });
}

void CallRecorder::route(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) {
  add([=](DeviceKernels& kernels) { kernels.route(scores, routes, size, rule); });
}

void CallRecorder::pick(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) {
  add([=](DeviceKernels& kernels) { kernels.pick(scores, routes, size, rule); });
}

void CallRecorder::place_shared_picks(const DeviceRoutes& routes, const SharedPickRoom& room, const SharedPicks& size) {
  add([=](DeviceKernels& kernels) { kernels.place_shared_picks(routes, room, size); });
}

void CallRecorder::sum_loads(std::int32_t* sums, const std::int32_t* loads, std::int64_t slices, std::int64_t lists) {
  add([=](DeviceKernels& kernels) { kernels.sum_loads(sums, loads, slices, lists); });
}

void CallRecorder::route_backward(float* probabilities, const float* weight_gradients, const DeviceRoutes& routes,
                                  const PickRouting& size, const RouterRule& rule, const float* added) {
  add([=](DeviceKernels& kernels) {
    kernels.route_backward(probabilities, weight_gradients, routes, size, rule, added);
  });
}

void CallRecorder::add_excess_picks(float* excess, const std::int32_t* picks, const PickRouting& size) {
  add([=](DeviceKernels& kernels) { kernels.add_excess_picks(excess, picks, size); });
}

void CallRecorder::balance_loss(float* losses, float* added, const float* probabilities, const DeviceRoutes& routes,
                                const PickRouting& size, const BalanceScale& scale) {
  add([=](DeviceKernels& kernels) { kernels.balance_loss(losses, added, probabilities, routes, size, scale); });
}

void CallRecorder::place_in_blocks(const DeviceRoutes& routes, std::int32_t* counts, std::int64_t picks,
                                   const ExpertBlocks& size) {
  add([=](DeviceKernels& kernels) { kernels.place_in_blocks(routes, counts, picks, size); });
}

void CallRecorder::place_received(std::int32_t* places, std::int32_t* bounds, const std::int32_t* counts,
                                  const ExpertBlocks& size) {
  add([=](DeviceKernels& kernels) { kernels.place_received(places, bounds, counts, size); });
}

void CallRecorder::place_singles(float* placed, const float* values, const std::int32_t* places, std::int64_t count) {
  add([=](DeviceKernels& kernels) { kernels.place_singles(placed, values, places, count); });
}

void CallRecorder::take_singles(float* values, const float* placed, const std::int32_t* places, std::int64_t count) {
  add([=](DeviceKernels& kernels) { kernels.take_singles(values, placed, places, count); });
}

void CallRecorder::place_rows(void* placed, const void* rows, const std::int32_t* places, const CopyRowsSize& size) {
  add([=](DeviceKernels& kernels) { kernels.place_rows(placed, rows, places, size); });
}

void CallRecorder::sum_placed_rows(void* rows, const void* placed, const std::int32_t* places, const float* weights,
                                   const CopyRowsSize& size) {
  add([=](DeviceKernels& kernels) { kernels.sum_placed_rows(rows, placed, places, weights, size); });
}

void CallRecorder::weigh_picks(float* weight_gradients, void* activation_gradient, void* output_gradient,
                               const void* activation, const DeviceRoutes& routes, const WeighedPicks& size) {
  add([=](DeviceKernels& kernels) {
    kernels.weigh_picks(weight_gradients, activation_gradient, output_gradient, activation, routes, size);
  });
}

void CallRecorder::experts_forward(void* y, const void* x, const void* weights, const ExpertRows& rows,
                                   std::int64_t out, std::int64_t in) {
  add([=](DeviceKernels& kernels) { kernels.experts_forward(y, x, weights, rows, out, in); });
}

void CallRecorder::experts_input_grad(void* dx, const void* dy, const void* weights, const ExpertRows& rows,
                                      std::int64_t in, std::int64_t out) {
  add([=](DeviceKernels& kernels) { kernels.experts_input_grad(dx, dy, weights, rows, in, out); });
}

void CallRecorder::experts_weight_grad(float* dweights, const void* dy, const void* x, const ExpertRows& rows,
                                       std::int64_t out, std::int64_t in) {
  add([=](DeviceKernels& kernels) { kernels.experts_weight_grad(dweights, dy, x, rows, out, in); });
}

void CallRecorder::experts_bias_forward(void* y, const void* biases, const ExpertRows& rows, std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.experts_bias_forward(y, biases, rows, columns); });
}

void CallRecorder::experts_bias_backward(float* dbiases, const void* dy, const ExpertRows& rows, std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.experts_bias_backward(dbiases, dy, rows, columns); });
}

}}  // namespace plumb::executor
