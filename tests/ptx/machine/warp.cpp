#include "tests/ptx/machine/warp.h"

#include <fmt/format.h>

#include "tests/ptx/machine/block.h"

namespace plumb::test::ptx {

Warp::Warp(Block& block, const Program& program, std::uint32_t index, LaneMask lanes)
    : block_(&block),
      program_(&program),
      index_(index),
      live_(lanes),
      registers_(program.registers),
      paths_{{0, static_cast<int>(program.instructions.size()), lanes}},
      phases_(block.work() == nullptr ? 0 : program.registers.size()) {}

void Warp::run() {
  while (!paths_.empty()) {
    Path& path = paths_.back();
    if (path.at == path.until || path.lanes == 0) {
      paths_.pop_back();
      continue;
    }
    const Instruction& in = program_->instructions[static_cast<std::size_t>(path.at)];
    LaneMask lanes = path.lanes;
    if (in.guard != Instruction::kNoGuard) lanes &= in.is_guard_negated ? ~predicate(in.guard) : predicate(in.guard);
    if (in.is_aligned && lanes != 0 && lanes != live_) stop_divergent(in, lanes);
    if (block_->work() != nullptr) phases_.add(*this, in, lanes);
    if (in.flow == Flow::kBranch) {
      branch(in, lanes);
      continue;
    }
    ++path.at;
    if (in.flow == Flow::kExit) {
      exit(lanes);
    } else if (lanes != 0) {
      if (in.unit != Unit::kNone && block_->work() != nullptr) count_instruction(*block_->work(), *this, in, lanes);
      in.run(*this, in, lanes);
    }
    if (is_waiting_) return;
  }
}

void Warp::branch(const Instruction& in, LaneMask taken) {
  const Path path = paths_.back();
  const LaneMask others = path.lanes & ~taken;
  if (others == 0 || taken == 0) {
    paths_.back().at = others == 0 ? in.target : path.at + 1;
    return;
  }
  paths_.back().at = in.reconvergence;
  if (in.reconvergence == path.until) paths_.pop_back();
  if (path.at + 1 != in.reconvergence) paths_.push_back({path.at + 1, in.reconvergence, others});
  if (in.target != in.reconvergence) paths_.push_back({in.target, in.reconvergence, taken});
}

void Warp::exit(LaneMask lanes) {
  live_ &= ~lanes;
  for (Path& path : paths_) path.lanes &= ~lanes;
}

void Warp::stop_divergent(const Instruction& in, LaneMask here) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(here));
  block_->report().add(
      FaultKind::kDivergence, in, block_->index(), index_ * kWarpLanes + first,
      fmt::format("is here with lanes {:08x} of its warp, while lanes {:08x} are elsewhere", here, live_ & ~here));
  throw StoppedKernel();
}

}  // namespace plumb::test::ptx
