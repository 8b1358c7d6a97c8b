#pragma once
// Makes the kernels of a mixture of experts from the bodies of kernels/simt (device/kernels/simt_kernels.h defines a
// Launcher). Products of 16-bit tensors run on tensor cores if their rows are multiples of 8 numbers and begin at
// multiples of 16 bytes.

#include <cstdint>
#include <utility>

#include "executor/kernels/device_kernels.h"
#include "kernels/simt/copy_columns.h"
#include "kernels/simt/copy_rows.h"
#include "kernels/simt/experts/expert_bias.h"
#include "kernels/simt/experts/router.h"
#include "kernels/simt/experts/warp_expert_products.h"

namespace plumb { inline namespace executor {

inline constexpr std::int64_t kScratchFloats = std::int64_t{4} << 20;  ///< of Launcher::scratch()

template <class S, class Launcher>
class SimtExpertKernels : public DeviceKernels {
 public:
  explicit SimtExpertKernels(Launcher launcher) : launcher_(std::move(launcher)) {}

  void router_scores(float* scores, const void* x, const void* weight, const RouterProduct& size) override {
    const ExpertRows rows{.rows = size.tokens};
    if (warp_product<simt::ExpertForm::kForward>(scores, stored(x), stored(weight), rows, size.experts, size.hidden))
      return;
    launch_rows(simt::ExpertRowProduct<float, S, S, simt::ExpertForm::kForward>{scores, stored(x), stored(weight), rows,
                                                                                size.experts, size.hidden});
  }
  void router_input_grad(void* dx, const float* dscores, const void* weight, const RouterProduct& size) override {
    const ExpertRows rows{.rows = size.tokens};
    if (const S* rounded = rounded_scores(dscores, size);
        rounded != nullptr && warp_product<simt::ExpertForm::kInputGrad>(stored(dx), rounded, stored(weight), rows,
                                                                         size.hidden, size.experts))
      return;
    launch_rows(simt::ExpertRowProduct<S, float, S, simt::ExpertForm::kInputGrad>{stored(dx), dscores, stored(weight),
                                                                                  rows, size.hidden, size.experts});
  }
  void router_weight_grad(float* dweight, const float* dscores, const void* x, const RouterProduct& size) override {
    const ExpertRows rows{.rows = size.tokens};
    if (const S* rounded = rounded_scores(dscores, size);
        rounded != nullptr &&
        warp_product<simt::ExpertForm::kWeightGrad>(dweight, rounded, stored(x), rows, size.hidden, size.experts))
      return;
    launch_weights(simt::ExpertWeightGrad<float, S>{dweight, dscores, stored(x), rows, size.experts, size.hidden});
  }

  void route(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) override {
    pick(scores, routes, size, rule);
    place(routes.places, routes.bounds, routes.picks, routes.loads, size, routes.before);
  }
  void pick(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) override {
    launcher_.launch(simt::RouterForward{scores, routes.picks, routes.weights, router_size(size, rule),
                                         rule.renormalised, rule.bias},
                     size.tokens(), kRouterLanes);
  }
  void place_shared_picks(const DeviceRoutes& routes, const SharedPickRoom& room, const SharedPicks& size) override {
    PickRouting whole = size.own, own = size.own;
    whole.sequence = size.whole_sequence();
    own.capacity = own.sequence * own.picks;  // no limit, since these picks are kept
    const std::int64_t picks = own.tokens() * own.picks;
    launcher_.launch_elements(simt::SpreadPicks{room.whole, room.gathered, size}, size.members * picks);
    place(room.whole_places, room.whole_bounds, room.whole, routes.loads, whole, routes.before);
    launcher_.launch_elements(simt::KeepOwnPicks{room.kept, routes.places, routes.picks, room.whole_places, size},
                              picks);
    place(routes.places, routes.bounds, room.kept, room.kept_loads, own);
  }
  void sum_loads(std::int32_t* sums, const std::int32_t* loads, std::int64_t slices, std::int64_t lists) override {
    launcher_.launch_elements(simt::SumLoads{sums, loads, slices, lists}, lists);
  }
  void route_backward(float* probabilities, const float* weight_gradients, const DeviceRoutes& routes,
                      const PickRouting& size, const RouterRule& rule, const float* added) override {
    launcher_.launch(simt::RouterBackward{probabilities, weight_gradients, routes.picks, router_size(size, rule),
                                          rule.renormalised, added, size.sequence},
                     size.tokens(), kRouterLanes);
  }
  void add_excess_picks(float* excess, const std::int32_t* picks, const PickRouting& size) override {
    launcher_.launch(simt::AddExcessPicks{excess, picks, router_size(size)}, size.experts, kPickLanes);
  }
  void balance_loss(float* losses, float* added, const float* probabilities, const DeviceRoutes& routes,
                    const PickRouting& size, const BalanceScale& scale) override {
    launcher_.launch(simt::BalanceLoss{losses, added, probabilities, routes.loads, size, scale.scale,
                                       scale.gradient_scale, scale.loss_scale},
                     size.tokens(), kRouterLanes);
  }

  void place_in_blocks(const DeviceRoutes& routes, std::int32_t* counts, std::int64_t picks,
                       const ExpertBlocks& size) override {
    launcher_.launch_elements(simt::PlaceInBlocks{routes.places, counts, routes.picks, routes.bounds, picks, size},
                              picks);
  }
  void place_received(std::int32_t* places, std::int32_t* bounds, const std::int32_t* counts,
                      const ExpertBlocks& size) override {
    launcher_.launch(simt::PlaceReceived{places, bounds, counts, size}, size.all_experts(), kRowLanes);
  }
  void place_singles(float* placed, const float* values, const std::int32_t* places, std::int64_t count) override {
    launcher_.launch_elements(simt::PlaceSingles{placed, values, places, count}, count);
  }
  void take_singles(float* values, const float* placed, const std::int32_t* places, std::int64_t count) override {
    launcher_.launch_elements(simt::TakeSingles{values, placed, places, count}, count);
  }

  void place_rows(void* placed, const void* rows, const std::int32_t* places, const CopyRowsSize& size) override {
    launcher_.launch(simt::PlaceRows<S>{stored(placed), stored(rows), places, size}, size.tokens, kRowLanes);
  }
  void sum_placed_rows(void* rows, const void* placed, const std::int32_t* places, const float* weights,
                       const CopyRowsSize& size) override {
    launcher_.launch(simt::SumPlacedRows<S>{stored(rows), stored(placed), places, weights, size}, size.tokens,
                     kRowLanes);
  }
  void weigh_picks(float* weight_gradients, void* activation_gradient, void* output_gradient, const void* activation,
                   const DeviceRoutes& routes, const WeighedPicks& size) override {
    launcher_.launch(simt::WeighPicks<S>{weight_gradients, stored(activation_gradient), stored(output_gradient),
                                         stored(activation), routes.weights, routes.places, size.picks, size.ffn,
                                         size.hidden, stored(size.biases), size.rows},
                     size.picks, kRowLanes);
  }

  void experts_forward(void* y, const void* x, const void* weights, const ExpertRows& rows, std::int64_t out,
                       std::int64_t in) override {
    row_product<simt::ExpertForm::kForward>(stored(y), stored(x), stored(weights), rows, out, in);
  }
  void experts_input_grad(void* dx, const void* dy, const void* weights, const ExpertRows& rows, std::int64_t in,
                          std::int64_t out) override {
    row_product<simt::ExpertForm::kInputGrad>(stored(dx), stored(dy), stored(weights), rows, in, out);
  }
  void experts_weight_grad(float* dweights, const void* dy, const void* x, const ExpertRows& rows, std::int64_t out,
                           std::int64_t in) override {
    if (warp_product<simt::ExpertForm::kWeightGrad>(dweights, stored(dy), stored(x), rows, in, out)) return;
    launch_weights(simt::ExpertWeightGrad<S, S>{dweights, stored(dy), stored(x), rows, out, in});
  }
  void experts_bias_forward(void* y, const void* biases, const ExpertRows& rows, std::int64_t columns) override {
    launcher_.launch(simt::ExpertBiasForward<S>{stored(y), stored(biases), rows, columns}, rows.rows, kRowLanes);
  }
  void experts_bias_backward(float* dbiases, const void* dy, const ExpertRows& rows, std::int64_t columns) override {
    launcher_.launch(simt::ExpertBiasBackward<S>{dbiases, stored(dy), rows, columns},
                     rows.experts * simt::parts_of(columns, kSumColumns), kRowLanes);
  }

 protected:
  static S* stored(void* tensor) { return static_cast<S*>(tensor); }
  static const S* stored(const void* tensor) { return static_cast<const S*>(tensor); }

  Launcher launcher_;

 private:
  static constexpr int kRouterLanes = 64, kPickLanes = 256, kRowLanes = 256;
  static constexpr int kProductLanes = 256;
  static constexpr std::int64_t kTile = 64;  // rows and columns of a block of kProductLanes lanes
  static constexpr std::int64_t kPiece = 8;  // numbers that are copied together

  static RouterSize router_size(const PickRouting& size, const RouterRule& rule = {}) {
    return {size.tokens(), size.experts, size.picks, rule.sigmoid, rule.expert_groups, rule.groups_per_token};
  }
  static bool is_aligned(const void* tensor) { return reinterpret_cast<std::uintptr_t>(tensor) % 16 == 0; }

  /// Counts the picks, and gives them rows.
  void place(std::int32_t* places, std::int32_t* bounds, const std::int32_t* picks, std::int32_t* loads,
             const PickRouting& size, const std::int32_t* before = nullptr) {
    const std::int64_t lists = size.sequences * size.experts;
    launcher_.launch(simt::CountPicks{loads, picks, size}, lists, kPickLanes);
    launcher_.launch(simt::PlacePicks{places, bounds, picks, loads, size, before}, lists, kPickLanes);
  }

  /// Enqueues the product on tensor cores and returns true if they take its format, sizes and addresses. `inner` is the
  /// height of a weight in a weight gradient.
  template <simt::ExpertForm kForm, class To>
  bool warp_product(To* to, const S* left, const S* right, const ExpertRows& rows, std::int64_t columns,
                    std::int64_t inner) {
    if constexpr (sizeof(S) == 2) {
      constexpr bool kIsWeightGrad = kForm == simt::ExpertForm::kWeightGrad;
      if (columns % kPiece != 0 || inner % kPiece != 0) return false;
      if (!is_aligned(to) || !is_aligned(left) || !is_aligned(right)) return false;
      launcher_.launch_warps(simt::WarpExpertProduct<S, To, kForm>{
          to, left, right, rows, columns, kIsWeightGrad ? 0 : inner, kIsWeightGrad ? inner : 0});
      return true;
    } else {
      return false;
    }
  }

  /// Returns the gradients of scores as S, in the launcher's scratch, or null if S is not of 16 bits or there is no
  /// room.
  const S* rounded_scores(const float* dscores, const RouterProduct& size) {
    if constexpr (sizeof(S) == 2) {
      if (size.tokens * size.experts > 2 * kScratchFloats) return nullptr;
      S* rounded = reinterpret_cast<S*>(launcher_.scratch());
      launcher_.launch_elements(simt::NarrowColumns<S>{rounded, dscores, size.experts, {size.tokens, size.experts}},
                                size.tokens * size.experts);
      return rounded;
    } else {
      return nullptr;
    }
  }

  template <class Body>
  void launch_rows(const Body& body) {
    launcher_.launch(body, simt::most_tiles(body.rows, kTile) * simt::parts_of(body.columns, kTile), kProductLanes);
  }
  template <class Body>
  void launch_weights(const Body& body) {
    launcher_.launch(body, body.rows.experts * simt::parts_of(body.out, kTile) * simt::parts_of(body.in, kTile),
                     kProductLanes);
  }
  template <simt::ExpertForm kForm>
  void row_product(S* to, const S* from, const S* weights, const ExpertRows& rows, std::int64_t columns,
                   std::int64_t inner) {
    if (warp_product<kForm>(to, from, weights, rows, columns, inner)) return;
    launch_rows(simt::ExpertRowProduct<S, S, S, kForm>{to, from, weights, rows, columns, inner});
  }
};

}}  // namespace plumb::executor
