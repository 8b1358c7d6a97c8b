#include "executor/layers/device/expert_steps.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "kernels/layer/expert_rows.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::int64_t kWord = sizeof(float);

RouterProduct router_product(const StepCall& of) {
  return {.tokens = of.shape()[0], .experts = of.shape()[1], .hidden = of.shape()[2]};
}

/// True if a bias is that of experts; otherwise it is the router's.
bool is_of_expert_rows(const StepCall& of) {
  return of.tensor_read(0).counted != CountedRows::kNone;
}

}  // namespace

bool is_of_experts(const StepCall& of) {
  switch (of.step.call()->kind) {
    case KernelKind::kRouterProduct:
    case KernelKind::kRouter:
    case KernelKind::kCopyRows:
    case KernelKind::kExpertProducts:
    case KernelKind::kWeighPicks:
      return true;
    case KernelKind::kBiasForward:
    case KernelKind::kBiasBackward:
      return is_of_expert_rows(of) || of.tensor_read(0).type == StoredType::kSingle;
    default:
      return false;
  }
}

ExpertSteps::ExpertSteps(const PlacedProgram& program, DeviceLayerBytes& bytes)
    : layer_(std::get<TransformerLayer>(program.share())),
      routes_(program.plain()),
      whole_sequence_(program.seat().whole_sequence(program.own())),
      slices_(program.seat().is_sliced() ? program.seat().slices : 1),
      slice_(program.seat().slice_number) {
  const DeviceSeat& seat = program.seat();
  const LayerWork& own = program.own();
  routing_ = {.sequences = own.microbatch,
              .sequence = own.sequence,
              .experts = layer_.experts,
              .picks = layer_.experts_per_token,
              .capacity = expert_capacity(layer_, whole_sequence_)};
  shared_picks_ = {.own = routing_,
                   .members = seat.context.ranks,
                   .member = seat.context.rank,
                   .is_zigzag = seat.context.attention == ContextAttention::kRing};
  if (is_sliced()) {
    loads_at_ = bytes.sequences;
    bytes.sequences += aligned_bytes(slices_ * lists() * kWord);
  }
}

std::int32_t* ExpertSteps::slice_loads(const StepCall& of, int slice) const {
  return reinterpret_cast<std::int32_t*>(of.call.sequences + loads_at_) + slice * lists();
}

/// Returns the routes with the loads of this slice; before them are the sums of the earlier ones.
DeviceRoutes ExpertSteps::routes_of_slice(const StepCall& of) const {
  DeviceRoutes routes = routes_.in(of);
  if (!is_sliced()) return routes;
  if (slice_ > 0) routes.before = routes.loads;
  routes.loads = slice_loads(of, slice_);
  return routes;
}

void ExpertSteps::enqueue(const StepCall& of) const {
  switch (of.step.call()->kind) {
    case KernelKind::kRouterProduct:
      return product_of_router(of);
    case KernelKind::kRouter:
      return of.is_forward() ? route(of) : route_backward(of);
    case KernelKind::kCopyRows:
      return copy_rows(of);
    case KernelKind::kExpertProducts:
      return product_of_experts(of);
    case KernelKind::kBiasForward:
    case KernelKind::kBiasBackward:
      return add_bias(of);
    case KernelKind::kWeighPicks:
      return weigh_picks(of);
    default:
      assert(!"not a kernel of experts");
  }
}

void ExpertSteps::product_of_router(const StepCall& of) const {
  const RouterProduct size = router_product(of);
  switch (static_cast<GemmForm>(of.shape()[3])) {
    case GemmForm::kInputGrad:
      return of.kernels().router_input_grad(of.written(0), of.floats_read(0), of.weight(0), size);
    case GemmForm::kWeightGrad:
      return of.kernels().router_weight_grad(of.gradient(0), of.floats_read(0), of.read(1), size);
    default:
      return of.kernels().router_scores(of.floats_written(0), of.read(0), of.weight(0), size);
  }
}

/// The bias of picks is a parameter of the forward alone.
RouterRule ExpertSteps::rule(const StepCall& of) const {
  return {.sigmoid = layer_.router == RouterKind::kSigmoid,
          .renormalised = layer_.renormalised,
          .expert_groups = layer_.expert_groups,
          .groups_per_token = layer_.groups_per_token,
          .bias = of.vector(0)};
}

/// Routes the picks; an expert takes the first picks of a whole sequence. In a context group share_picks() goes on.
void ExpertSteps::route(const StepCall& of) const {
  DeviceKernels& kernels = of.kernels();
  const DeviceRoutes to = routes_of_slice(of);
  if (to.before != nullptr) kernels.sum_loads(routes_.in(of).loads, slice_loads(of, 0), slice_, lists());
  float* const probabilities = of.floats_written(0);
  if (!of.call.context.is_shared()) return kernels.route(probabilities, to, routing_, rule(of));
  kernels.pick(probabilities, to, routing_, rule(of));
}

void ExpertSteps::share_picks(const StepCall& of) const {
  const DeviceRoutes to = routes_of_slice(of);
  const std::int64_t own = picked(), all = shared_picks_.members * own;
  SharedPickRoom room{.gathered = of.integers_written(0)};
  room.whole = room.gathered + all;
  room.whole_places = room.whole + all;
  room.kept = room.whole_places + all;
  room.whole_bounds = room.kept + own;
  room.kept_loads = room.whole_bounds + layer_.experts + 1;
  of.kernels().copy(room.gathered + shared_picks_.member * own, to.picks, own * kWord);
  of.call.context.gather_words(of.floats_written(0), all);
  of.kernels().place_shared_picks(to, room, shared_picks_);
}

/// Turns probabilities into the gradient of the scores, with that of the load-balancing loss.
void ExpertSteps::route_backward(const StepCall& of) const {
  DeviceKernels& kernels = of.kernels();
  float* const probabilities = of.floats_written(0);
  const DeviceRoutes to = routes_.in(of);
  float* added = nullptr;
  if (layer_.balance_loss > 0) {
    added = of.floats_written(1);
    const double share = static_cast<double>(layer_.experts) / static_cast<double>(whole_sequence_ * routing_.picks);
    if (is_sliced()) kernels.sum_loads(to.loads, slice_loads(of, 0), slices_, lists());
    kernels.balance_loss(of.call.balance_losses, added, probabilities, to, routing_,
                         {.scale = static_cast<float>(layer_.balance_loss * share),
                          .gradient_scale = of.call.gradient_scale,
                          .loss_scale = of.call.loss_scale});
  }
  if (layer_.selection_bias) kernels.add_excess_picks(of.gradient(0), to.picks, routing_);
  kernels.route_backward(probabilities, of.floats_read(1), to, routing_, rule(of), added);
}

/// Places tokens' rows at their picks' places, or sums rows by expert back, in the forward by the picks' weights.
void ExpertSteps::copy_rows(const StepCall& of) const {
  const CopyRowsSize size{routing_.tokens(), routing_.picks, layer_.hidden};
  const DeviceRoutes to = routes_.in(of);
  DeviceKernels& kernels = of.kernels();
  if (of.tensor_written(0).counted != CountedRows::kNone)
    return kernels.place_rows(of.written(0), of.read(0), to.places, size);
  kernels.sum_placed_rows(of.written(0), of.read(0), to.places, of.is_forward() ? to.weights : nullptr, size);
  if (of.step.writes.size() > 1)  // the gradients of the picks' weights have come back
    kernels.take_singles(of.floats_written(1), of.floats_read(of.step.reads.size() - 1), to.places, picked());
}

/// Returns the rows of this rank's experts, whose bounds are read as number `bounds`.
ExpertRows ExpertSteps::rows_of_experts(const StepCall& of, std::size_t bounds) const {
  return {.bounds = of.integers_at(of.step.reads[bounds]),
          .rows = of.tensor_read(0).rows,
          .experts = layer_.experts / of.program.seat().experts.ranks};
}

void ExpertSteps::add_bias(const StepCall& of) const {
  DeviceKernels& kernels = of.kernels();
  const bool is_forward = of.step.is(KernelKind::kBiasForward);
  if (is_of_expert_rows(of)) {
    const ExpertRows rows = rows_of_experts(of, 1);
    if (is_forward) return kernels.experts_bias_forward(of.written(0), of.weight(0), rows, of.columns());
    return kernels.experts_bias_backward(of.gradient(0), of.read(0), rows, of.columns());
  }
  if (is_forward) return kernels.router_bias_forward(of.floats_written(0), of.vector(0), of.rows(), of.columns());
  kernels.router_bias_backward(of.gradient(0), of.floats_read(0), of.rows(), of.columns());
}

/// The bounds of the experts' rows are read behind a product's operands.
void ExpertSteps::product_of_experts(const StepCall& of) const {
  const auto form = static_cast<GemmForm>(of.shape()[4]);
  const ExpertRows rows = rows_of_experts(of, form == GemmForm::kWeightGrad ? 2 : 1);
  DeviceKernels& kernels = of.kernels();
  switch (form) {
    case GemmForm::kInputGrad:
      return kernels.experts_input_grad(of.written(0), of.read(0), of.weight(0), rows, of.shape()[1], of.shape()[2]);
    case GemmForm::kWeightGrad:
      return kernels.experts_weight_grad(of.gradient(0), of.read(0), of.read(1), rows, of.shape()[0], of.shape()[1]);
    default:
      return kernels.experts_forward(of.written(0), of.read(0), of.weight(0), rows, of.shape()[1], of.shape()[2]);
  }
}

/// The first of the ranks that share an expert adds what the weights' gradients have of its output's bias.
void ExpertSteps::weigh_picks(const StepCall& of) const {
  const DeviceRoutes weighed{.weights = of.floats_read(3), .places = of.integers_at(of.step.reads[4])};
  WeighedPicks size{.picks = of.tensor_read(0).rows, .ffn = of.shape()[1], .hidden = of.shape()[2]};
  if (!of.step.parameters.empty() && of.program.seat().experts.tensor.rank == 0) {
    constexpr std::size_t kBounds = 5;  // behind the places
    size.biases = of.weight(0);
    size.rows = rows_of_experts(of, kBounds);
  }
  of.kernels().weigh_picks(of.floats_written(2), of.written(0), of.written(1), of.read(2), weighed, size);
}

}}  // namespace plumb::executor
