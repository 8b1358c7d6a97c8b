#include "kernels/layer/program/fused.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plumb { inline namespace kernels {
namespace {

bool is_product(const LayerStep& step, GemmForm form) {
  return step.is(KernelKind::kGemm) && step.call()->shape[4] == static_cast<std::int64_t>(form);
}

/// True if the second step reads the first one's result.
bool passes_on(const LayerStep& first, const LayerStep& second) {
  return !first.writes.empty() && second.reads.has(first.writes.front());
}

void add_new(Positions& to, const Positions& from) {
  for (const int each : from)
    if (!to.has(each)) to.push_back(each);
}

/// Returns a step that does what both do, with that call.
LayerStep joined(const LayerStep& first, const LayerStep& second, KernelCall call) {
  LayerStep step = first;
  step.name = first.name + ", " + second.name;
  step.does = std::move(call);
  for (const int tensor : second.reads)
    if (!first.writes.has(tensor)) add_new(step.reads, {tensor});
  add_new(step.writes, second.writes);
  add_new(step.parameters, second.parameters);
  add_new(step.gradients, second.gradients);
  add_new(step.holds, second.holds);
  step.cheap = first.cheap || second.cheap;
  return step;
}

KernelCall with_form(const KernelCall& product, GemmForm form) {
  std::vector<std::int64_t> shape = product.shape;
  shape[4] = static_cast<std::int64_t>(form);
  return kernel_call(product.kind, std::move(shape));
}

/// Joins each two neighbours for which `rule` returns a step.
template <class Rule>
void join_neighbours(std::vector<LayerStep>& steps, Rule rule) {
  for (std::size_t i = 0; i + 1 < steps.size();) {
    const LayerStep &first = steps[i], &second = steps[i + 1];
    std::optional<LayerStep> one;
    if (first.pass == second.pass) one = rule(first, second);
    if (!one) {
      ++i;
      continue;
    }
    steps[i] = std::move(*one);
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

using Rewritten = std::optional<LayerStep>;

Rewritten dropout_with_residual(const LayerStep& first, const LayerStep& second) {
  if (!first.is(KernelKind::kDropout) || !second.is(KernelKind::kResidualAdd) || !passes_on(first, second)) return {};
  return joined(first, second, *first.call());
}

Rewritten norm_behind_residual(const LayerStep& first, const LayerStep& second) {
  constexpr std::int64_t kBehindResidual = 2;
  if (!first.is(KernelKind::kResidualAdd) || !second.is(KernelKind::kNormForward) || !passes_on(first, second))
    return {};
  std::vector<std::int64_t> shape = second.call()->shape;
  shape[2] += kBehindResidual;
  return joined(first, second, kernel_call(KernelKind::kNormForward, std::move(shape)));
}

Rewritten behind_bias(const LayerStep& first, const LayerStep& second, KernelKind kind) {
  if (!first.is(KernelKind::kBiasForward) || !second.is(kind) || !passes_on(first, second)) return {};
  return joined(first, second, *second.call());
}

Rewritten product_with_bias(const LayerStep& first, const LayerStep& second) {
  if (is_product(first, GemmForm::kForward) && second.is(KernelKind::kBiasForward) && passes_on(first, second))
    return joined(first, second, with_form(*first.call(), GemmForm::kForwardBias));
  if (is_product(first, GemmForm::kWeightGrad) && second.is(KernelKind::kBiasBackward) &&
      first.reads.front() == second.reads.front())
    return joined(first, second, with_form(*first.call(), GemmForm::kWeightGradBias));
  return {};
}

Rewritten product_with_gelu(const LayerStep& first, const LayerStep& second) {
  const bool is_forward = is_product(first, GemmForm::kForward) || is_product(first, GemmForm::kForwardBias);
  if (!is_forward || !second.is(KernelKind::kActivationForward) || !passes_on(first, second)) return {};
  return joined(first, second, with_form(*first.call(), GemmForm::kForwardGelu));
}

}  // namespace

LayerProgram fused(LayerProgram program, Fusion fusion) {
  std::vector<LayerStep>& steps = program.steps;
  join_neighbours(steps, dropout_with_residual);
  join_neighbours(steps, norm_behind_residual);
  join_neighbours(steps, [&](const LayerStep& first, const LayerStep& second) -> Rewritten {
    const bool is_last = second.writes.has(program.output);
    return is_last ? behind_bias(first, second, KernelKind::kResidualAdd) : std::nullopt;
  });
  join_neighbours(steps, [](const LayerStep& first, const LayerStep& second) {
    return behind_bias(first, second, KernelKind::kReluForward);
  });
  if (fusion.products) join_neighbours(steps, product_with_bias);
  if (fusion.gelu) join_neighbours(steps, product_with_gelu);
  return program;
}

}}  // namespace plumb::kernels
