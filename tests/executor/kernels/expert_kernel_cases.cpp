#include <numeric>

#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

PickRouting random_routing(KernelOperands& with) {
  PickRouting size{.sequences = with.size(1, 3), .sequence = 2 * with.size(1, 30), .experts = with.size(2, 20)};
  size.picks = with.size(1, size.experts < 4 ? size.experts : 4);
  size.capacity = with.size(1, size.sequence * size.picks);
  return size;
}

DeviceRoutes routes_room(KernelOperands& with, const PickRouting& size) {
  const std::int64_t picks = size.tokens() * size.picks;
  return {.picks = with.integer_room(picks),
          .weights = with.float_room(picks),
          .places = with.integer_room(picks),
          .bounds = with.integer_room(size.experts + 1),
          .loads = with.integer_room(size.sequences * size.experts)};
}

/// Ascending, from 0 to at most `rows`; some experts have none.
std::vector<std::int32_t> random_bounds(KernelOperands& with, std::int64_t experts, std::int64_t rows) {
  std::vector<std::int32_t> bounds = {0};
  for (std::int64_t expert = 0; expert < experts; ++expert)
    bounds.push_back(static_cast<std::int32_t>(
        bounds.back() + with.size(0, with.coin() ? 0 : (rows - bounds.back()) / (experts - expert))));
  return bounds;
}

/// A row of its own for each pick, or -1.
std::vector<std::int32_t> random_places(KernelOperands& with, std::int64_t picks) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(picks));
  std::iota(places.begin(), places.end(), 0);
  for (std::int64_t i = picks - 1; i > 0; --i)
    std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(with.size(0, i))]);
  for (std::int32_t& place : places)
    if (with.size(0, 4) == 0) place = -1;
  return places;
}

CaseCall router_products(KernelOperands& with) {
  const std::int64_t piece = with.coin() ? 8 : 1;  // tensor cores take pieces of 8
  const RouterProduct size{.tokens = with.size(1, 80),
                           .experts = piece * with.size(1, 40 / piece),
                           .hidden = piece * with.size(1, 200 / piece)};
  float *scores = with.float_room(size.tokens * size.experts), *dweight = with.floats(size.experts * size.hidden);
  const float* dscores = with.floats(size.tokens * size.experts);
  const void *x = with.stored(size.tokens * size.hidden), *weight = with.stored(size.experts * size.hidden);
  void* dx = with.stored_room(size.tokens * size.hidden);
  return [=](DeviceKernels& kernels) {
    kernels.router_scores(scores, x, weight, size);
    kernels.router_input_grad(dx, dscores, weight, size);
    kernels.router_weight_grad(dweight, dscores, x, size);
  };
}

CaseCall router_bias(KernelOperands& with) {
  const std::int64_t tokens = with.size(1, 200), experts = with.size(1, 80);
  float *scores = with.floats(tokens * experts), *dbias = with.floats(experts);
  const float* bias = with.floats(experts);
  return [=](DeviceKernels& kernels) {
    kernels.router_bias_forward(scores, bias, tokens, experts);
    kernels.router_bias_backward(dbias, scores, tokens, experts);
  };
}

CaseCall router(KernelOperands& with) {
  const PickRouting size = random_routing(with);
  RouterRule rule{.sigmoid = with.coin(), .renormalised = with.coin()};
  if (with.coin()) rule.bias = with.floats(size.experts);
  if (size.experts % 2 == 0 && size.picks <= size.experts / 2) rule.expert_groups = 2;
  float* excess = with.floats(size.experts);
  const DeviceRoutes routes = routes_room(with, size);
  float* scores = with.floats(size.tokens() * size.experts, 3);
  const float* weight_gradients = with.floats(size.tokens() * size.picks);
  float *losses = with.float_room(size.tokens()), *added = with.float_room(size.sequences * size.experts);
  return [=](DeviceKernels& kernels) {
    kernels.route(scores, routes, size, rule);
    kernels.balance_loss(losses, added, scores, routes, size, {.scale = 0.01F, .gradient_scale = 0.5F});
    kernels.add_excess_picks(excess, routes.picks, size);
    kernels.route_backward(scores, weight_gradients, routes, size, rule, added);
  };
}

/// The router of a slice of sequences, whose slices before have taken some of the experts' room.
CaseCall sliced_router(KernelOperands& with) {
  const PickRouting size = random_routing(with);
  const std::int64_t lists = size.sequences * size.experts, slices = with.size(1, 4);
  DeviceRoutes routes = routes_room(with, size);
  std::vector<std::int32_t> earlier(static_cast<std::size_t>(slices * lists));
  for (std::int32_t& load : earlier) load = static_cast<std::int32_t>(with.size(0, 2 + size.capacity / 2));
  const std::int32_t* loads = with.integers_of(earlier);
  std::int32_t* before = with.integer_room(lists);
  routes.before = before;
  float* scores = with.floats(size.tokens() * size.experts, 3);
  return [=](DeviceKernels& kernels) {
    kernels.sum_loads(before, loads, slices, lists);
    kernels.route(scores, routes, size, {.renormalised = true});
  };
}

/// The first of some members, who all pick what this one picks.
CaseCall shared_picks(KernelOperands& with) {
  const PickRouting own = random_routing(with);
  SharedPicks size{.own = own, .members = with.size(2, 3), .is_zigzag = with.coin()};
  const std::int64_t picks = own.tokens() * own.picks, all = size.members * picks;
  const DeviceRoutes routes = routes_room(with, own);
  float* scores = with.floats(own.tokens() * own.experts, 3);
  const SharedPickRoom room{.gathered = with.integer_room(all),
                            .whole = with.integer_room(all),
                            .whole_places = with.integer_room(all),
                            .whole_bounds = with.integer_room(own.experts + 1),
                            .kept = with.integer_room(picks),
                            .kept_loads = with.integer_room(own.sequences * own.experts)};
  return [=](DeviceKernels& kernels) {
    kernels.pick(scores, routes, own, {.renormalised = true});
    for (std::int64_t member = 0; member < size.members; ++member)
      kernels.copy(room.gathered + member * picks, routes.picks, picks * 4);
    kernels.place_shared_picks(routes, room, size);
  };
}

/// Blocks that a rank sends, and those that it makes of the same counts of all ranks.
CaseCall expert_blocks(KernelOperands& with) {
  const ExpertBlocks size{.ranks = with.size(1, 4), .experts = with.size(1, 5), .rows = 64};
  const std::int64_t picks = with.size(1, 60);
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(picks)), places(chosen.size(), -1), bounds = {0};
  for (std::int32_t& expert : chosen) expert = static_cast<std::int32_t>(with.size(0, size.all_experts() - 1));
  std::int32_t row = 0;
  for (std::int64_t expert = 0; expert < size.all_experts(); ++expert) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] == expert && with.size(0, 4) > 0) places[i] = row++;
    bounds.push_back(row);
  }
  const DeviceRoutes routes{
      .picks = with.integers_of(chosen), .places = with.integers_of(places), .bounds = with.integers_of(bounds)};
  std::int32_t *counts = with.integer_room(size.all_experts()), *received = with.integer_room(size.all_experts());
  std::int32_t *received_places = with.integer_room(size.all_rows()),
               *received_bounds = with.integer_room(size.experts + 1);
  return [=](DeviceKernels& kernels) {
    kernels.place_in_blocks(routes, counts, picks, size);
    for (std::int64_t rank = 0; rank < size.ranks; ++rank)
      kernels.copy(received + rank * size.experts, counts, size.experts * 4);
    kernels.place_received(received_places, received_bounds, received, size);
  };
}

CaseCall placed_rows(KernelOperands& with) {
  const CopyRowsSize size{.tokens = with.size(1, 40), .picks = with.size(1, 4), .columns = with.size(1, 200)};
  const std::int64_t picks = size.tokens * size.picks;
  const std::int32_t* places = with.integers_of(random_places(with, picks));
  const void* rows = with.stored(size.tokens * size.columns);
  void *placed = with.stored(picks * size.columns), *sums = with.stored_room(size.tokens * size.columns);
  const float *weights = with.coin() ? with.floats(picks) : nullptr, *singles = with.floats(picks);
  float *placed_singles = with.floats(picks), *taken = with.float_room(picks);
  return [=](DeviceKernels& kernels) {
    kernels.place_rows(placed, rows, places, size);
    kernels.sum_placed_rows(sums, placed, places, weights, size);
    kernels.place_singles(placed_singles, singles, places, picks);
    kernels.take_singles(taken, placed_singles, places, picks);
  };
}

CaseCall weighed_picks(KernelOperands& with) {
  WeighedPicks size{.picks = with.size(1, 60), .ffn = with.size(1, 90), .hidden = with.size(1, 90)};
  if (with.coin()) {
    const std::int64_t experts = with.size(1, 9);
    std::vector<std::int32_t> bounds = random_bounds(with, experts, size.picks);
    bounds.back() = static_cast<std::int32_t>(size.picks);  // every row is an expert's
    size.biases = with.weights(experts * size.hidden);
    size.rows = {.bounds = with.integers_of(bounds), .rows = size.picks, .experts = experts};
  }
  const DeviceRoutes routes{.weights = with.floats(size.picks),
                            .places = with.integers_of(random_places(with, size.picks))};
  float* weight_gradients = with.float_room(size.picks);
  void *of_activation = with.stored(size.picks * size.ffn), *of_output = with.stored(size.picks * size.hidden);
  const void* activations = with.stored(size.picks * size.ffn);
  return [=](DeviceKernels& kernels) {
    kernels.weigh_picks(weight_gradients, of_activation, of_output, activations, routes, size);
  };
}

CaseCall expert_products(KernelOperands& with) {
  const bool suits = with.coin();
  const std::int64_t experts = with.size(1, 5), rows = with.size(1, 300);
  const std::int64_t out = suits ? 8 * with.size(1, 20) : with.size(1, 90),
                     in = suits ? 8 * with.size(1, 20) : with.size(1, 90);
  const ExpertRows of{.bounds = with.integers_of(random_bounds(with, experts, rows)), .rows = rows, .experts = experts};
  const void *x = with.stored(rows * in), *dy = with.stored(rows * out), *weights = with.stored(experts * out * in);
  void *y = with.stored(rows * out), *dx = with.stored(rows * in);
  float* dweights = with.floats(experts * out * in);
  return [=](DeviceKernels& kernels) {
    kernels.experts_forward(y, x, weights, of, out, in);
    kernels.experts_input_grad(dx, dy, weights, of, in, out);
    kernels.experts_weight_grad(dweights, dy, x, of, out, in);
  };
}

CaseCall expert_biases(KernelOperands& with) {
  const std::int64_t experts = with.size(1, 9), rows = with.size(1, 300), columns = with.size(1, 90);
  const ExpertRows of{.bounds = with.integers_of(random_bounds(with, experts, rows)), .rows = rows, .experts = experts};
  const void* biases = with.weights(experts * columns);
  void* y = with.stored(rows * columns);
  float* dbiases = with.floats(experts * columns);
  return [=](DeviceKernels& kernels) {
    kernels.experts_bias_forward(y, biases, of, columns);
    kernels.experts_bias_backward(dbiases, y, of, columns);
  };
}

}  // namespace

void append_expert_cases(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {{"a router's products", router_products},
                             {"a router's bias", router_bias},
                             {"a router", router},
                             {"a router of slices", sliced_router},
                             {"picks that members share", shared_picks},
                             {"blocks of an expert group", expert_blocks},
                             {"rows to their experts and back", placed_rows},
                             {"weights of picks", weighed_picks},
                             {"products of experts", expert_products},
                             {"biases of experts", expert_biases}});
}

}  // namespace plumb::test
