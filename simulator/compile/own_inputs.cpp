#include "simulator/compile/own_inputs.h"

#include "schedules/dependencies/inputs.h"
#include "simulator/compile/deadlock.h"

namespace plumb { inline namespace simulator {
namespace {

/// A bit for each of F, B, I, W and R, the first five operations, and of OFFLOAD, RELOAD, EVICT and LOAD, the last four.
constexpr unsigned bit_of(Op op) {
  const auto first_move = static_cast<unsigned>(Op::kOffload);
  const auto number = static_cast<unsigned>(op);
  return 1U << (number < first_move ? number : number - first_move + 5);
}
constexpr bool has_bit(Op op) {
  return op <= Op::kRecompute || op >= Op::kOffload;
}

}  // namespace

OwnInputs::OwnInputs(const Schedule& schedule, const StageNeighbors& neighbors, const Shards& shards,
                     const Units& units, Sends sends)
    : schedule_(schedule),
      neighbors_(neighbors),
      shards_(shards),
      units_(units),
      sends_(sends),
      known_(units.count()) {}

void OwnInputs::run(const Action* first, int count) {
  for (int i = 0; i < count; ++i) finish(first[i]);
  for (int i = 0; i < count; ++i) require(first[i]);
}

bool OwnInputs::recomputed(const Action& action) const {
  return (known_[units_.of(action)].done & bit_of(Op::kRecompute)) != 0;
}

void OwnInputs::finish(const Action& a) {
  if (!has_bit(a.op)) return;
  Known& unit = known_[units_.of(a)];
  if ((unit.needed & bit_of(a.op)) != 0) throw deadlock_error(schedule_, sends_);
  unit.done |= static_cast<std::uint16_t>(bit_of(a.op));
}

/// Marks the inputs from the action's own rank that have not run: they must not be listed later.
void OwnInputs::require(const Action& a) {
  for_each_input(a, neighbors_, shards_, [&](const ActionInput& input) {
    if (input.part >= units_.parts || schedule_.stages[input.stage].rank != schedule_.stages[a.stage].rank) return;
    unsigned bits = 0;
    for (int i = 0; i < input.ops; ++i) bits |= bit_of(input.op[i]);
    Known& unit = known_[units_.of(input.stage, a.microbatch, input.part)];
    unit.needed |= static_cast<std::uint16_t>(bits & ~unit.done);
  });
}

}}  // namespace plumb::simulator
