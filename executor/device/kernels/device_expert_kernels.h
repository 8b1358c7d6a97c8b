#pragma once
// The GPU kernels of a mixture of experts as its layer calls them (executor/device/layers/device_experts.h), besides
// those of device_kernels.h. How many rows an expert has stays on the device: its picks' places, the bounds of the
// experts' rows and the products that read them. Symbols: T tokens, h hidden, E experts, k picks of a token, R = T k, b
// sequences.

#include <cstdint>

#include "kernels/cpu/copy_rows.h"
#include "kernels/simt/experts/expert_blocks.h"
#include "kernels/simt/experts/expert_products.h"
#include "kernels/simt/experts/expert_routes.h"
#include "kernels/simt/experts/shared_picks.h"

namespace plumb { inline namespace executor {

/// What a router decides of a micro-batch.
struct DeviceRoutes {
  std::int32_t* picks = nullptr;         ///< [T, k]
  float* weights = nullptr;              ///< [T, k] what a pick weighs
  std::int32_t* places = nullptr;        ///< [T, k] its row; -1: dropped
  std::int32_t* bounds = nullptr;        ///< [E + 1] of the experts' rows
  std::int32_t* loads = nullptr;         ///< [b, E] picks, dropped ones included
  const std::int32_t* before = nullptr;  ///< [b, E] those of the sequences' slices before; null: there are none
};

/// Where picks of whole sequences are worked on; integers.
struct SharedPickRoom {
  std::int32_t* gathered = nullptr;      ///< [n, b, S, k], with all members' picks
  std::int32_t* whole = nullptr;         ///< [b, s, k]
  std::int32_t* whole_places = nullptr;  ///< [b, s, k]
  std::int32_t* whole_bounds = nullptr;  ///< [E + 1]
  std::int32_t* kept = nullptr;          ///< [b, S, k]
  std::int32_t* kept_loads = nullptr;    ///< [b, E]
};

/// Of a router: its scores, whatever tensors are stored in, are fp32.
struct RouterProduct {
  std::int64_t tokens = 0, experts = 0, hidden = 0;
};

/// A load-balancing loss: its weight times E / (s k), and what gradients are multiplied by.
struct BalanceScale {
  float scale = 0;
  float gradient_scale = 1;
  const float* loss_scale = nullptr;
};

/// Sizes of WeighPicks (kernels/simt/experts/expert_routes.h).
struct WeighedPicks {
  std::int64_t picks = 0, ffn = 0, hidden = 0;
};

class DeviceExpertKernels {
 public:
  virtual ~DeviceExpertKernels() = default;

  /// scores [T, E] = x [T, h] times the weight [E, h]; dx is written, the weight's gradient is added up.
  virtual void router_scores(float* scores, const void* x, const void* weight, const RouterProduct& size) = 0;
  virtual void router_input_grad(void* dx, const float* dscores, const void* weight, const RouterProduct& size) = 0;
  virtual void router_weight_grad(float* dweight, const float* dscores, const void* x, const RouterProduct& size) = 0;

  /// Scores become probabilities, and all of `routes` is written.
  virtual void route(float* scores, const DeviceRoutes& routes, const PickRouting& size, bool renormalised) = 0;
  /// The same in two parts, between which a context group gathers its picks: probabilities, picks and weights; then
  /// places, bounds and loads, those of whole sequences.
  virtual void pick(float* scores, const DeviceRoutes& routes, const PickRouting& size, bool renormalised) = 0;
  virtual void place_shared_picks(const DeviceRoutes& routes, const SharedPickRoom& room, const SharedPicks& size) = 0;
  /// sums: [lists] of so many slices' loads, [slices, lists]
  virtual void sum_loads(std::int32_t* sums, const std::int32_t* loads, std::int64_t slices, std::int64_t lists) = 0;
  /// Probabilities become the gradient of the scores. added: [b, E], or null
  virtual void route_backward(float* probabilities, const float* weight_gradients, const DeviceRoutes& routes,
                              const PickRouting& size, bool renormalised, const float* added) = 0;
  /// losses: [T] written; added: [b, E] written
  virtual void balance_loss(float* losses, float* added, const float* probabilities, const DeviceRoutes& routes,
                            const PickRouting& size, const BalanceScale& scale) = 0;

  /// Of an expert group (kernels/simt/experts/expert_blocks.h): routes.places become those in blocks, counts [E] are written;
  /// then, from received counts, places [n, M] and bounds [E/n + 1].
  virtual void place_in_blocks(const DeviceRoutes& routes, std::int32_t* counts, std::int64_t picks,
                               const ExpertBlocks& size) = 0;
  virtual void place_received(std::int32_t* places, std::int32_t* bounds, const std::int32_t* counts,
                              const ExpertBlocks& size) = 0;
  /// fp32 numbers to their places, and back (0 where there is none).
  virtual void place_singles(float* placed, const float* values, const std::int32_t* places, std::int64_t count) = 0;
  virtual void take_singles(float* values, const float* placed, const std::int32_t* places, std::int64_t count) = 0;

  virtual void place_rows(void* placed, const void* rows, const std::int32_t* places, const CopyRowsSize& size) = 0;
  virtual void sum_placed_rows(void* rows, const void* placed, const std::int32_t* places, const float* weights,
                               const CopyRowsSize& size) = 0;
  virtual void weigh_picks(float* weight_gradients, void* activation_gradient, void* output_gradient,
                           const void* activation, const DeviceRoutes& routes, const WeighedPicks& size) = 0;

  /// As linear_forward and the others (device_kernels.h), expert by expert; weights: [E, out, in].
  virtual void experts_forward(void* y, const void* x, const void* weights, const ExpertRows& rows, std::int64_t out,
                               std::int64_t in) = 0;
  virtual void experts_input_grad(void* dx, const void* dy, const void* weights, const ExpertRows& rows,
                                  std::int64_t in, std::int64_t out) = 0;
  virtual void experts_weight_grad(float* dweights, const void* dy, const void* x, const ExpertRows& rows,
                                   std::int64_t out, std::int64_t in) = 0;
};

}}  // namespace plumb::executor
