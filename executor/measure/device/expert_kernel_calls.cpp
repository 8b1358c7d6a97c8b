#include "executor/measure/device/expert_kernel_calls.h"

#include <cassert>

namespace plumb { inline namespace executor {
namespace {

GemmForm form_of(const KernelCall& call) {
  return static_cast<GemmForm>(call.shape.back());
}

/// The number of experts, the rows of all experts together, and the sizes of one expert's weight, from the shape {m, n,
/// k, count, form}.
struct ExpertSizes {
  std::int64_t experts, rows, out, in;
};
ExpertSizes sizes_of(const KernelCall& call) {
  const std::vector<std::int64_t>& s = call.shape;
  if (form_of(call) == GemmForm::kWeightGrad) return {.experts = s[3], .rows = s[2] * s[3], .out = s[0], .in = s[1]};
  if (form_of(call) == GemmForm::kInputGrad) return {.experts = s[3], .rows = s[0] * s[3], .out = s[2], .in = s[1]};
  return {.experts = s[3], .rows = s[0] * s[3], .out = s[1], .in = s[2]};
}

void enqueue_experts(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const ExpertSizes size = sizes_of(call);
  const ExpertRows rows{.bounds = with.integers(), .rows = size.rows, .experts = size.experts};
  std::byte* const outside = with.stored(size.rows * size.out);
  std::byte* const inside = with.stored(size.rows * size.in);
  const std::int64_t weights = size.experts * size.out * size.in;
  if (form_of(call) == GemmForm::kWeightGrad)
    return kernels.experts_weight_grad(with.floats(weights), outside, inside, rows, size.out, size.in);
  if (form_of(call) == GemmForm::kInputGrad)
    return kernels.experts_input_grad(inside, outside, with.stored(weights), rows, size.in, size.out);
  kernels.experts_forward(outside, inside, with.stored(weights), rows, size.out, size.in);
}

void enqueue_router_product(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const RouterProduct size{.tokens = call.shape[0], .experts = call.shape[1], .hidden = call.shape[2]};
  float* const scores = with.floats(size.tokens * size.experts);
  std::byte* const tokens = with.stored(size.tokens * size.hidden);
  const std::int64_t weights = size.experts * size.hidden;
  if (form_of(call) == GemmForm::kWeightGrad)
    return kernels.router_weight_grad(with.floats(weights), scores, tokens, size);
  if (form_of(call) == GemmForm::kInputGrad)
    return kernels.router_input_grad(tokens, scores, with.stored(weights), size);
  kernels.router_scores(scores, tokens, with.stored(weights), size);
}

/// Enqueues a router. The forward writes all of its results, whatever the scores are.
void enqueue_router(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const PickRouting size{.sequences = 1,
                         .sequence = call.shape[0],
                         .experts = call.shape[1],
                         .picks = call.shape[2],
                         .capacity = call.shape[0]};
  const std::int64_t picks = size.sequence * size.picks;
  const auto integers = [&](std::int64_t count) { return reinterpret_cast<std::int32_t*>(with.bytes(count * 4)); };
  const DeviceRoutes routes{.picks = integers(picks),
                            .weights = with.floats(picks),
                            .places = integers(picks),
                            .bounds = integers(size.experts + 1),
                            .loads = integers(size.experts)};
  kernels.route(with.floats(size.sequence * size.experts), routes, size, {.renormalised = true});
}

/// Returns a place for every row: a stride through all rows that meets each once.
std::vector<std::int32_t> scattered_places(std::int64_t rows) {
  std::int64_t stride = rows / 2 + rows / 8 + 1;
  const auto common = [](std::int64_t a, std::int64_t b) {
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  };
  while (common(stride, rows) != 1) ++stride;
  std::vector<std::int32_t> places(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i)
    places[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * stride % rows);
  return places;
}

}  // namespace

bool is_expert_kernel(KernelKind kind) {
  return kind == KernelKind::kRouter || kind == KernelKind::kCopyRows || kind == KernelKind::kWeighPicks ||
         kind == KernelKind::kExpertProducts || kind == KernelKind::kRouterProduct;
}

std::int64_t expert_integer_count(const KernelCall& call) {
  if (call.kind == KernelKind::kCopyRows || call.kind == KernelKind::kWeighPicks) return call.shape[0];
  return call.kind == KernelKind::kExpertProducts ? call.shape[3] + 1 : 0;
}

std::vector<std::int32_t> expert_integers(const KernelCall& call) {
  if (call.kind == KernelKind::kCopyRows || call.kind == KernelKind::kWeighPicks)
    return scattered_places(call.shape[0]);
  std::vector<std::int32_t> bounds(static_cast<std::size_t>(expert_integer_count(call)));
  if (bounds.empty()) return bounds;
  const ExpertSizes size = sizes_of(call);
  for (std::size_t expert = 0; expert < bounds.size(); ++expert)
    bounds[expert] = static_cast<std::int32_t>(static_cast<std::int64_t>(expert) * (size.rows / size.experts));
  return bounds;
}

std::int64_t expert_operand_bytes(const KernelCall& call, std::int64_t element_bytes) {
  const std::vector<std::int64_t>& s = call.shape;
  switch (call.kind) {
    case KernelKind::kExpertProducts: {
      const ExpertSizes size = sizes_of(call);
      return size.rows * (size.out + size.in) * element_bytes + size.experts * size.out * size.in * 4;
    }
    case KernelKind::kRouterProduct:
      return s[0] * s[1] * 4 + s[0] * s[2] * element_bytes + s[1] * s[2] * 4;
    case KernelKind::kRouter:
      return (s[0] * (s[1] + 3 * s[2]) + 2 * s[1] + 1) * 4;
    case KernelKind::kCopyRows:
      return 2 * s[0] * s[1] * element_bytes;
    default:
      return s[0] * ((2 * s[1] + s[2]) * element_bytes + 2 * 4);
  }
}

void enqueue_expert_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  assert(is_expert_kernel(call.kind));
  const std::vector<std::int64_t>& s = call.shape;
  switch (call.kind) {
    case KernelKind::kExpertProducts:
      return enqueue_experts(kernels, call, with);
    case KernelKind::kRouterProduct:
      return enqueue_router_product(kernels, call, with);
    case KernelKind::kRouter:
      return enqueue_router(kernels, call, with);
    case KernelKind::kCopyRows:
      return kernels.place_rows(with.stored(s[0] * s[1]), with.stored(s[0] * s[1]), with.integers(),
                                {.tokens = s[0], .picks = 1, .columns = s[1]});
    default: {
      DeviceRoutes routes{.weights = with.floats(s[0])};
      routes.places = const_cast<std::int32_t*>(with.integers());  // only read
      return kernels.weigh_picks(with.floats(s[0]), with.stored(s[0] * s[1]), with.stored(s[0] * s[2]),
                                 with.stored(s[0] * s[1]), routes, {.picks = s[0], .ffn = s[1], .hidden = s[2]});
    }
  }
}

}}  // namespace plumb::executor
