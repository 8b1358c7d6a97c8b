#include "schedules/dependencies/weight_messages.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumb { inline namespace schedules {
namespace {

/// The messages of one stage that its later actions wait for.
struct StageMessages {
  std::vector<std::int32_t> weights;    // the SENDs of its weights, to it and from it, since its last RESHARD
  std::int32_t first_weights = -1;      // the first of them that came to it
  std::vector<std::int32_t> gradients;  // the SENDs of what it has received since it last handed its sum on
};

/// Returns [action id] the other end of each message.
std::vector<std::int32_t> partners(const Schedule& schedule) {
  using Way = std::tuple<bool, std::int32_t, std::int32_t>;  // gradient, from stage, to stage
  struct Ends {
    std::vector<std::int32_t> sends;
    std::vector<std::int32_t> receives;
  };
  std::map<Way, Ends> ways;
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& a : actions) {
      const bool gradient = a.op == Op::kSendWeightGrad || a.op == Op::kRecvWeightGrad;
      if (sends_weights(a.op)) ways[{gradient, a.stage, a.peer}].sends.push_back(id);
      if (receives_weights(a.op)) ways[{gradient, a.peer, a.stage}].receives.push_back(id);
      ++id;
    }
  }
  std::vector<std::int32_t> partner(static_cast<std::size_t>(id), -1);
  for (const auto& [way, ends] : ways) {
    for (std::size_t k = 0; k < std::min(ends.sends.size(), ends.receives.size()); ++k) {
      partner[ends.sends[k]] = ends.receives[k];
      partner[ends.receives[k]] = ends.sends[k];
    }
  }
  return partner;
}

/// Appends what an action waits for, and notes what later ones will wait for.
void pass_by_stage(const Action& a, std::int32_t id, std::int32_t partner, StageMessages& stage,
                   std::vector<std::int32_t>& awaited) {
  const auto wait = [&awaited](const std::vector<std::int32_t>& sends) {
    awaited.insert(awaited.end(), sends.begin(), sends.end());
  };
  switch (a.op) {
    case Op::kSendWeights:
      if (stage.first_weights >= 0) awaited.push_back(stage.first_weights);
      stage.weights.push_back(id);
      break;
    case Op::kRecvWeights:
      if (partner < 0) break;
      if (stage.first_weights < 0) stage.first_weights = partner;
      stage.weights.push_back(partner);
      break;
    case Op::kReshard:
      wait(stage.weights);
      stage.weights.clear();
      stage.first_weights = -1;
      break;
    case Op::kRecvWeightGrad:
      if (partner >= 0) stage.gradients.push_back(partner);
      break;
    case Op::kSendWeightGrad:
    case Op::kOptimizerStep:
      wait(stage.gradients);
      stage.gradients.clear();
      break;
    default:
      if (is_compute(a.op) && stage.first_weights >= 0) awaited.push_back(stage.first_weights);
      break;
  }
}

}  // namespace

bool weights_travel(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return is_weight_message(action.op); });
  });
}

WeightMessages weight_messages(const Schedule& schedule) {
  WeightMessages messages;
  if (!weights_travel(schedule)) return messages;
  messages.partner = partners(schedule);
  messages.first_awaited.reserve(messages.partner.size() + 1);
  std::vector<StageMessages> stages(schedule.stages.size());
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& a : actions) {
      messages.first_awaited.push_back(static_cast<std::int32_t>(messages.awaited.size()));
      pass_by_stage(a, id, messages.partner[id], stages[a.stage], messages.awaited);
      ++id;
    }
  }
  messages.first_awaited.push_back(static_cast<std::int32_t>(messages.awaited.size()));
  return messages;
}

std::vector<bool> stages_with_state(const Schedule& schedule) {
  std::vector<bool> with_state(schedule.stages.size(), !weights_travel(schedule));
  for (const auto& actions : schedule.ranks) {
    for (const Action& a : actions)
      if (a.op == Op::kOptimizerStep) with_state[a.stage] = true;
  }
  return with_state;
}

}}  // namespace plumb::schedules
