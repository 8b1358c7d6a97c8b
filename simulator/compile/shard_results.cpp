#include "simulator/compile/shard_results.h"

#include "schedules/dependencies/inputs.h"

namespace plumb { inline namespace simulator {
namespace {

/// Returns the place of an operation's result in a unit, or -1 for an operation whose result stays on its stage.
int result_of(Op op) {
  if (op == Op::kForward) return 0;
  return gives_input_gradient(op) ? 1 : -1;
}

}  // namespace

ShardResults::ShardResults(const Schedule& schedule, const StageNeighbors& neighbors, const Shards& shards,
                           const Units& units, Turns& turns)
    : schedule_(schedule), neighbors_(neighbors), shards_(shards), units_(units), turns_(turns) {
  if (!shards.any()) return;
  results_.resize(units.count());
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions)
      if (const int result = result_of(action.op); result >= 0) results_[units.of(action)].is_listed[result] = true;
  }
}

template <class Visit>
void ShardResults::for_each_result(const Action& action, const Visit& visit) const {
  if (results_.empty() || !has_microbatch(action.op)) return;
  const int rank = schedule_.stages[action.stage].rank;
  for_each_input(action, neighbors_, shards_, [&](const ActionInput& input) {
    if (input.from != ActionInput::From::kShard || schedule_.stages[input.stage].rank == rank) return;
    const Unit& unit = results_[units_.of(input.stage, action.microbatch, input.part)];
    const int result = result_of(input.op[0]);
    if (unit.is_listed[result]) visit(unit.result[result]);
  });
}

const Register* ShardResults::missing_result(const Action& action) const {
  const Register* missing = nullptr;
  for_each_result(action, [&missing](const Register& result) {
    if (result == kZeroRegister) missing = &result;
  });
  return missing;
}

void ShardResults::take_inputs(const Action& action, std::vector<Register>& inputs) const {
  for_each_result(action, [&inputs](const Register& result) { inputs.push_back(result); });
}

bool ShardResults::is_taken(const Action& action) const {
  if (results_.empty()) return false;
  if (action.op == Op::kForward)
    return !shards_.behind[action.stage].empty() || !shards_.siblings[action.stage].empty();
  return gives_input_gradient(action.op) && !shards_.before[action.stage].empty();
}

void ShardResults::deliver(const Action& action, Register end) {
  Register& result = results_[units_.of(action)].result[result_of(action.op)];
  result = end;
  for (int rank = 0; rank < static_cast<int>(schedule_.ranks.size()); ++rank) turns_.arrived(rank, &result);
}

}}  // namespace plumb::simulator
