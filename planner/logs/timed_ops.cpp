#include "planner/logs/timed_ops.h"

#include <array>
#include <utility>

namespace plumb { inline namespace planner {

std::vector<Op> timed_ops(std::string_view name) {
  const std::vector<Op> backward{Op::kBackward, Op::kInputGrad, Op::kWeightGrad, Op::kRecompute};
  const std::array<std::pair<std::string_view, std::vector<Op>>, 10> known{{{"forward-compute", {Op::kForward}},
                                                                            {"forward-step", {Op::kForward}},
                                                                            {"fwd", {Op::kForward}},
                                                                            {"backward-compute", backward},
                                                                            {"backward-step", backward},
                                                                            {"bwd_inner", backward},
                                                                            {"all-grads-sync", {Op::kReduceGrad}},
                                                                            {"bwd_allreduce", {Op::kReduceGrad}},
                                                                            {"optimizer", {Op::kOptimizerStep}},
                                                                            {"step", {Op::kOptimizerStep}}}};
  for (const auto& [timer, ops] : known) {
    if (timer == name) return ops;
  }
  return {};
}

}}  // namespace plumb::planner
