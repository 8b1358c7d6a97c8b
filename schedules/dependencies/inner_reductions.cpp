#include "schedules/dependencies/inner_reductions.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace plumb { inline namespace schedules {
namespace {

constexpr std::int64_t kNoHost = -1;

/// The actions of one stage that stand between a place in the list and the next OPTIMIZER_STEP of the stage.
struct Tail {
  std::int64_t last_gradient = kNoHost;  ///< position of the last B or W
  std::vector<std::int16_t> reduced;     ///< buckets that are reduced
};

/// Returns the position of the compute action that a REDUCE_GRAD stands directly before, if that action makes weight
/// gradients of the same stage and is no part of a pair, or kNoHost.
std::int64_t host_of(const std::vector<Action>& actions, std::size_t reduction) {
  const int stage = actions[reduction].stage;
  std::size_t i = reduction + 1;
  while (i < actions.size() &&
         (is_message(actions[i].op) || (actions[i].op == Op::kReduceGrad && actions[i].stage == stage))) {
    ++i;
  }
  const bool is_host = i < actions.size() && gives_weight_gradient(actions[i].op) && actions[i].stage == stage &&
                       !actions[i].overlaps_next && (i == 0 || !actions[i - 1].overlaps_next);
  return is_host ? static_cast<std::int64_t>(i) : kNoHost;
}

}  // namespace

std::vector<std::int64_t> hosts_of_reductions(const std::vector<Action>& actions, bool copies) {
  std::vector<std::int64_t> hosts(actions.size(), kNoHost);
  if (copies || std::ranges::find(actions, Op::kReduceGrad, &Action::op) == actions.end()) return hosts;
  std::map<int, Tail> tails;  // by stage
  for (std::size_t i = actions.size(); i-- > 0;) {
    const Action& action = actions[i];
    const bool reduces = action.op == Op::kReduceGrad;
    if (!reduces && action.op != Op::kOptimizerStep && !gives_weight_gradient(action.op)) continue;
    Tail& tail = tails[action.stage];
    if (action.op == Op::kOptimizerStep) {
      tail = {};
    } else if (!reduces) {
      if (tail.last_gradient == kNoHost) tail.last_gradient = static_cast<std::int64_t>(i);
    } else if (std::ranges::find(tail.reduced, action.part) == tail.reduced.end()) {
      if (tail.last_gradient != kNoHost && host_of(actions, i) == tail.last_gradient) hosts[i] = tail.last_gradient;
      tail.reduced.push_back(action.part);
    }
  }
  return hosts;
}

}}  // namespace plumb::schedules
