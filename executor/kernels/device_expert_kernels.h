#pragma once
// The GPU kernels of a mixture of experts as its layer calls them (executor/layers/device/expert_steps.h), beyond
// those of device_kernels.h. The number of an expert's rows stays on the device, in its picks' places and the bounds of
// the experts' rows; the products read it there. Symbols: T tokens, h hidden, E experts, k picks of a token, R = T k, b
// sequences.

#include <cstdint>

#include "kernels/cpu/copy_rows.h"
#include "kernels/simt/experts/expert_blocks.h"
#include "kernels/simt/experts/expert_products.h"
#include "kernels/simt/experts/expert_routes.h"
#include "kernels/simt/experts/shared_picks.h"

namespace plumb { inline namespace executor {

/// The decisions of a router for a micro-batch.
struct DeviceRoutes {
  std::int32_t* picks = nullptr;   ///< [T, k]
  float* weights = nullptr;        ///< [T, k] the weight of each pick
  std::int32_t* places = nullptr;  ///< [T, k] the row of each pick; -1: dropped
  std::int32_t* bounds = nullptr;  ///< [E + 1] bounds of the experts' rows
  std::int32_t* loads = nullptr;   ///< [b, E] number of picks, dropped ones included
  /// [b, E] number of picks of the sequences' earlier slices; null: there are none.
  const std::int32_t* before = nullptr;
};

/// Memory for the picks of whole sequences; integers.
struct SharedPickRoom {
  std::int32_t* gathered = nullptr;      ///< [n, b, S, k] the picks of all members
  std::int32_t* whole = nullptr;         ///< [b, s, k]
  std::int32_t* whole_places = nullptr;  ///< [b, s, k]
  std::int32_t* whole_bounds = nullptr;  ///< [E + 1]
  std::int32_t* kept = nullptr;          ///< [b, S, k]
  std::int32_t* kept_loads = nullptr;    ///< [b, E]
};

/// The product of a router. Its scores are fp32, whatever the format of tensors is.
struct RouterProduct {
  std::int64_t tokens = 0, experts = 0, hidden = 0;
};

/// How a router weighs experts and picks among them (kernels/cpu/router.h).
struct RouterRule {
  bool sigmoid = false;       ///< of each score; otherwise a softmax over the experts
  bool renormalised = false;  ///< a token's picks weigh 1 in all
  std::int64_t expert_groups = 1;
  std::int64_t groups_per_token = 1;
  const float* bias = nullptr;  ///< [E] that is added to probabilities where they are compared; null: none
};

/// The factors of a load-balancing loss: its weight times E / (s k), and the factors of its gradients.
struct BalanceScale {
  float scale = 0;
  float gradient_scale = 1;
  const float* loss_scale = nullptr;
};

/// Sizes of WeighPicks (kernels/simt/experts/expert_routes.h), and the biases of the experts' outputs.
struct WeighedPicks {
  std::int64_t picks = 0, ffn = 0, hidden = 0;
  const void* biases = nullptr;  ///< [E, h] as they are stored; null: there are none
  ExpertRows rows;               ///< rows of the experts that have them
};

class DeviceExpertKernels {
 public:
  virtual ~DeviceExpertKernels() = default;

  /// Compute scores [T, E] = x [T, h] times the weight [E, h], and the gradients: dx is written, the weight's is added
  /// up.
  virtual void router_scores(float* scores, const void* x, const void* weight, const RouterProduct& size) = 0;
  virtual void router_input_grad(void* dx, const float* dscores, const void* weight, const RouterProduct& size) = 0;
  virtual void router_weight_grad(float* dweight, const float* dscores, const void* x, const RouterProduct& size) = 0;

  /// Adds a bias [E] to scores, or adds up its gradient.
  virtual void router_bias_forward(float* scores, const float* bias, std::int64_t tokens, std::int64_t experts) = 0;
  virtual void router_bias_backward(float* dbias, const float* dscores, std::int64_t tokens, std::int64_t experts) = 0;

  /// Turns scores into probabilities and writes all of `routes`.
  virtual void route(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) = 0;
  /// Do the same in two parts, between which a context group gathers its picks. pick() writes probabilities, picks and
  /// weights; place_shared_picks() writes places, bounds and loads, where the loads are those of whole sequences.
  virtual void pick(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) = 0;
  virtual void place_shared_picks(const DeviceRoutes& routes, const SharedPickRoom& room, const SharedPicks& size) = 0;
  /// Sums up the loads of slices. sums: [lists]; loads: [slices, lists]
  virtual void sum_loads(std::int32_t* sums, const std::int32_t* loads, std::int64_t slices, std::int64_t lists) = 0;
  /// Turns probabilities into the gradient of the scores. added: [b, E], or null
  virtual void route_backward(float* probabilities, const float* weight_gradients, const DeviceRoutes& routes,
                              const PickRouting& size, const RouterRule& rule, const float* added) = 0;
  /// Adds the excess of picks to the gradient [E] of a bias of picks. picks: [T, k]
  virtual void add_excess_picks(float* excess, const std::int32_t* picks, const PickRouting& size) = 0;
  /// Computes the load-balancing loss. losses: [T] written; added: [b, E] written
  virtual void balance_loss(float* losses, float* added, const float* probabilities, const DeviceRoutes& routes,
                            const PickRouting& size, const BalanceScale& scale) = 0;

  /// Place the rows of an expert group (kernels/simt/experts/expert_blocks.h). The first turns routes.places into
  /// places in blocks and writes counts [E]; the second computes places [n, M] and bounds [E/n + 1] from received
  /// counts.
  virtual void place_in_blocks(const DeviceRoutes& routes, std::int32_t* counts, std::int64_t picks,
                               const ExpertBlocks& size) = 0;
  virtual void place_received(std::int32_t* places, std::int32_t* bounds, const std::int32_t* counts,
                              const ExpertBlocks& size) = 0;
  /// Copy fp32 numbers to their places, and back (0 where there is no place).
  virtual void place_singles(float* placed, const float* values, const std::int32_t* places, std::int64_t count) = 0;
  virtual void take_singles(float* values, const float* placed, const std::int32_t* places, std::int64_t count) = 0;

  virtual void place_rows(void* placed, const void* rows, const std::int32_t* places, const CopyRowsSize& size) = 0;
  virtual void sum_placed_rows(void* rows, const void* placed, const std::int32_t* places, const float* weights,
                               const CopyRowsSize& size) = 0;
  virtual void weigh_picks(float* weight_gradients, void* activation_gradient, void* output_gradient,
                           const void* activation, const DeviceRoutes& routes, const WeighedPicks& size) = 0;

  /// Compute linear_forward and its gradients (device_kernels.h) expert by expert. weights: [E, out, in]
  virtual void experts_forward(void* y, const void* x, const void* weights, const ExpertRows& rows, std::int64_t out,
                               std::int64_t in) = 0;
  virtual void experts_input_grad(void* dx, const void* dy, const void* weights, const ExpertRows& rows,
                                  std::int64_t in, std::int64_t out) = 0;
  virtual void experts_weight_grad(float* dweights, const void* dy, const void* x, const ExpertRows& rows,
                                   std::int64_t out, std::int64_t in) = 0;
  /// Add the bias of a row's expert, or add up its gradient. y, dy: stored [R, C]; biases: stored [E, C]; dbiases: [E, C]
  virtual void experts_bias_forward(void* y, const void* biases, const ExpertRows& rows, std::int64_t columns) = 0;
  virtual void experts_bias_backward(float* dbiases, const void* dy, const ExpertRows& rows, std::int64_t columns) = 0;
};

}}  // namespace plumb::executor
