#include "tools/reports/precision_note.h"

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

std::string reason_of(const Plan& plan) {
  const StackSpec stack = plan.training.stack.value_or(StackSpec{});
  const double share = stack.expert_gemm_share;
  const bool narrow = stack.narrow_expert_ffn == 0 || plan.model.expert_ffn <= stack.narrow_expert_ffn;
  if (plan.model.experts > 0 && share < 1 && narrow) {
    return fmt::format("the products of its experts reach {:.0f} % of a plain product's rate where they are quantized",
                       100 * share);
  }
  return "its products are so small that the casts of their operands and the launches take longer than they save";
}

}  // namespace

std::string slower_than_bf16(const Plan& plan, const StepSums& predicted) {
  const auto& peaks = plan.cluster.device.peak_flops_per_second;
  if (!is_quantized(plan.training.precision) || !peaks.contains(Precision::kBf16)) return "";
  Plan wide = plan;
  wide.training.precision = Precision::kBf16;
  const Evaluation other = evaluate(wide, {.record_timeline = false});
  if (!other.exists || predicted.makespan <= other.simulation.makespan) return "";
  return fmt::format("{} is {:.1f} % slower than bf16 in this layout ({} a step): {}",
                     precision_name(plan.training.precision),
                     100 * (to_seconds(predicted.makespan) / to_seconds(other.simulation.makespan) - 1),
                     duration_text(to_seconds(other.simulation.makespan).count()), reason_of(plan));
}

}}  // namespace plumb::tools
