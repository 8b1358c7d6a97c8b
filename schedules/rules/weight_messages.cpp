#include "schedules/dependencies/weight_messages.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {
namespace {

Action answer_to(const Action& a) {
  const bool weights = a.op == Op::kSendWeights || a.op == Op::kRecvWeights;
  const Op op = sends_weights(a.op) ? (weights ? Op::kRecvWeights : Op::kRecvWeightGrad)
                                    : (weights ? Op::kSendWeights : Op::kSendWeightGrad);
  return {.op = op, .stage = a.peer, .peer = a.stage};
}

/// Checks that every message has its other end, and that the receives of a channel stand in the order of its sends.
void check_ends(const Schedule& schedule, const WeightMessages& messages, Findings& found) {
  const ActionIds ids = action_ids(schedule);
  std::map<std::tuple<int, int, Op>, std::int32_t> last_receive;  // by source rank, destination rank, send
  std::int32_t id = 0;
  for_each_action(schedule, [&](int r, std::int64_t i, const Action& a) {
    const std::int32_t here = id++;
    if (!is_weight_message(a.op)) return;
    const int other_rank = schedule.stages[a.peer].rank;
    const std::int32_t partner = messages.partner[here];
    if (partner < 0) {
      found.report(r, i, Rule::kUnmatchedMessage,
                   fmt::format("{} has no {} on rank {}; add it there, or remove this one", to_text(a),
                               to_text(answer_to(a)), other_rank));
    } else if (sends_weights(a.op)) {
      const auto [last, is_first] = last_receive.try_emplace({r, other_rank, a.op}, partner);
      if (!is_first && partner < last->second) {
        const auto at = [&](std::int32_t receive) {
          const ActionPlace place = place_of(ids, receive);
          return to_text(schedule.ranks[place.rank][place.position]);
        };
        found.report(other_rank, place_of(ids, partner).position, Rule::kMessageOrder,
                     fmt::format("{} stands ahead of {}, but rank {} sends them the other way round; exchange them",
                                 at(partner), at(last->second), r));
      }
      last->second = partner;
    }
  });
}

/// Checks that a rank has the weights that it computes with or hands on.
void check_weights_are_there(const Schedule& schedule, const std::vector<bool>& with_state, Findings& found) {
  std::vector<bool> has_weights = with_state;
  for_each_action(schedule, [&](int r, std::int64_t i, const Action& a) {
    if (a.op == Op::kRecvWeights) has_weights[a.stage] = true;
    if (a.op == Op::kReshard) has_weights[a.stage] = with_state[a.stage];
    const bool uses = is_compute(a.op) || a.op == Op::kSendWeights;
    if (!uses || has_weights[a.stage]) return;
    found.report(r, i, Rule::kSharding,
                 fmt::format("{} uses weights that rank {} does not have; add a {}RECV_WEIGHTS from a copy of stage {} "
                             "ahead, or the OPTIMIZER_STEP that makes it their owner",
                             to_text(a), r, a.stage, a.stage));
  });
}

/// Checks that no two copies own the weights of a model part.
void check_owners(const Schedule& schedule, const std::vector<bool>& with_state, Findings& found) {
  std::map<int, int> owner;  // by model part
  for (int s = 0; s < static_cast<int>(schedule.stages.size()); ++s) {
    if (!with_state[s]) continue;
    const StagePlace& place = schedule.stages[s];
    const auto [first, is_first] = owner.emplace(place.model_part, s);
    if (is_first) continue;
    found.report(place.rank, -1, Rule::kOptimizer,
                 fmt::format("stages {} and {} both step the weights of model part {}, which travel between them; keep "
                             "one OPTIMIZER_STEP",
                             first->second, s, place.model_part));
  }
}

}  // namespace

std::vector<Violation> weight_message_violations(const Schedule& schedule) {
  const WeightMessages messages = weight_messages(schedule);
  if (!messages.any()) return {};
  Findings found;
  if (is_asynchronous(schedule)) {
    found.report(-1, -1, Rule::kVersion,
                 fmt::format("weights of policy {} cannot travel, since they have one version only; make them current",
                             policy_name(schedule.weights)));
  }
  const std::vector<bool> with_state = stages_with_state(schedule);
  check_ends(schedule, messages, found);
  check_weights_are_there(schedule, with_state, found);
  check_owners(schedule, with_state, found);
  return found.take();
}

}}  // namespace plumb::schedules
