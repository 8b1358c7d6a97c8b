#include "simulator/compile/own_inputs.h"

#include "simulator/compile/deadlock.h"

namespace plumb { inline namespace simulator {
namespace {

/// Returns the bit of an operation: the first five for F, B, I, W and R, the last four for OFFLOAD, RELOAD, EVICT and
/// LOAD.
constexpr unsigned bit_of(Op op) {
  const auto first_move = static_cast<unsigned>(Op::kOffload);
  const auto number = static_cast<unsigned>(op);
  return 1U << (number < first_move ? number : number - first_move + 5);
}
constexpr bool has_bit(Op op) {
  return op <= Op::kRecompute || op >= Op::kOffload;
}

}  // namespace

OwnInputs::OwnInputs(const Schedule& schedule, const StageNeighbors& neighbors, const Units& units, Sends sends)
    : schedule_(schedule), neighbors_(neighbors), units_(units), sends_(sends), known_(units.count()) {}

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

/// Marks the inputs that an action takes from its own rank and that are not done: they must not be listed later.
void OwnInputs::require(const Action& a) {
  const auto need = [&](int stage, int part, unsigned bits) {
    if (part >= units_.parts) return;
    Known& unit = known_[units_.of(stage, a.microbatch, part)];
    unit.needed |= static_cast<std::uint16_t>(bits & ~unit.done);
  };
  constexpr unsigned kGradients = bit_of(Op::kBackward) | bit_of(Op::kInputGrad);
  const auto local = [&](int neighbor) {
    return neighbor >= 0 && schedule_.stages[neighbor].rank == schedule_.stages[a.stage].rank;
  };
  constexpr unsigned kBack = bit_of(Op::kReload) | bit_of(Op::kLoad);
  switch (a.op) {
    case Op::kForward:
      if (const int before = neighbors_.predecessor[a.stage]; local(before)) need(before, a.part, bit_of(Op::kForward));
      if (a.part > 0) need(a.stage, a.part - 1, bit_of(Op::kForward));
      break;
    case Op::kBackward:
    case Op::kInputGrad:
      need(a.stage, a.part, bit_of(Op::kForward) | bit_of(Op::kRecompute) | kBack);
      if (const int behind = neighbors_.successor[a.stage]; local(behind)) need(behind, a.part, kGradients);
      need(a.stage, a.part + 1, kGradients);
      break;
    case Op::kWeightGrad:
      need(a.stage, a.part, bit_of(Op::kInputGrad) | kBack);
      break;
    case Op::kRecompute:
      need(a.stage, a.part, bit_of(Op::kForward) | kBack);
      break;
    case Op::kOffload:
    case Op::kEvict:
      need(a.stage, a.part, bit_of(Op::kForward));
      break;
    case Op::kReload:
      need(a.stage, a.part, bit_of(Op::kOffload));
      break;
    case Op::kLoad:
      need(a.stage, a.part, bit_of(Op::kEvict));
      break;
    default:
      break;
  }
}

}}  // namespace plumb::simulator
