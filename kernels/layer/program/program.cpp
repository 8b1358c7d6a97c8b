#include "kernels/layer/program/program.h"

#include <algorithm>

namespace plumb { inline namespace kernels {

const char* pass_name(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kInputGrad:
      return "input gradient";
    case Pass::kWeightGrad:
      return "weight gradient";
    case Pass::kOptimizer:
      break;
  }
  return "optimizer";
}

std::span<const LayerStep> steps_of(const LayerProgram& program, Pass pass) {
  return {std::ranges::lower_bound(program.steps, pass, {}, &LayerStep::pass),
          std::ranges::upper_bound(program.steps, pass, {}, &LayerStep::pass)};
}

std::vector<KernelCall> kernels_of(const LayerProgram& program, Pass pass) {
  std::vector<KernelCall> calls;
  for (const LayerStep& step : steps_of(program, pass))
    if (const KernelCall* call = step.call()) calls.push_back(*call);
  return calls;
}

std::vector<Exchange> exchanges_of(const LayerProgram& program, Pass pass) {
  std::vector<Exchange> exchanges;
  for (const LayerStep& step : steps_of(program, pass))
    if (const Exchange* exchange = step.exchange()) exchanges.push_back(*exchange);
  return exchanges;
}

bool feeds_attention(const LayerProgram& program, const LayerStep& step) {
  return std::ranges::any_of(steps_of(program, step.pass), [&](const LayerStep& other) {
    const bool is_attention = other.is(KernelKind::kAttentionForward) || other.is(KernelKind::kAttentionBackward);
    return is_attention && other.reads.has(step.writes.front());
  });
}

std::string step_text(const LayerStep& step) {
  return "step '" + step.name + "' of the " + pass_name(step.pass);
}

}}  // namespace plumb::kernels
