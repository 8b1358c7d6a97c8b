#include "simulator/compile/step_kinds.h"

#include <algorithm>

#include "schedules/rules/validate.h"

namespace plumb { inline namespace simulator {

StepKinds::StepKinds(const Schedule& schedule) {
  const int stages = static_cast<int>(schedule.stages.size());
  const int ranks = static_cast<int>(schedule.ranks.size());
  bool sound = std::ranges::all_of(schedule.stages,
                                   [&](const StagePlace& place) { return place.rank >= 0 && place.rank < ranks; });
  for (int r = 0; r < ranks && sound; ++r) {
    for (const Action& a : schedule.ranks[r]) {
      sound = sound && a.stage >= 0 && a.stage < stages && schedule.stages[a.stage].rank == r && a.part >= 0 &&
              (!is_weight_message(a.op) || (a.peer >= 0 && a.peer < stages)) &&
              (!has_microbatch(a.op) || (a.microbatch >= 0 && a.microbatch < schedule.microbatches));
      std::size_t& parts = ops_[static_cast<std::size_t>(a.op)].parts;
      parts = std::max(parts, static_cast<std::size_t>(a.part) + 1);
      compute_actions_ += is_compute(a.op) ? 1 : 0;
    }
  }
  if (!sound) require_valid(schedule);

  std::size_t variants = 0;
  for (int op = 0; op < kOpCount; ++op) {
    OpRange& range = ops_[op];
    range.first = variants;
    variants += range.parts * schedule.stages.size();
    if (has_microbatch(static_cast<Op>(op))) parts_ = std::max(parts_, static_cast<int>(range.parts));
  }
  variants_.resize(variants);
  transfers_.resize(2 * schedule.stages.size());
  receives_.resize(schedule.ranks.size());
}

template <typename Make>
std::uint32_t StepKinds::find_plain(std::vector<std::vector<Plain>>& plain, std::size_t row, const Plain& wanted,
                                    Make make) {
  if (row >= plain.size()) plain.resize(row + 1);
  for (const Plain& known : plain[row]) {
    if (known.from == wanted.from && known.other == wanted.other && known.reason == wanted.reason) return known.kind;
  }
  plain[row].push_back(wanted);
  plain[row].back().kind = add(make());
  return plain[row].back().kind;
}

std::uint32_t StepKinds::transfer(const Action& send, Register from, Register channel) {
  const std::size_t row = 2 * static_cast<std::size_t>(send.stage) + (send.op == Op::kSendGradient ? 1 : 0);
  return find_plain(transfers_, row, {.from = from, .other = channel},
                    [&] { return StepKind{.sends = true, .send = send, .from = from, .channel = channel}; });
}

std::uint32_t StepKinds::copy(Register from, Register to, Reason output_reason) {
  return find_plain(copies_, from, {.from = from, .other = to, .reason = output_reason}, [&] {
    return StepKind{.from = from, .to = to, .channel = to, .output_reason = output_reason, .passes_cause = true};
  });
}

std::uint32_t StepKinds::issue_of_receive(int rank) {
  return find_plain(receives_, static_cast<std::size_t>(rank), {}, [&] {
    return StepKind{.rank = rank, .from = rank_register(rank), .output_reason = Reason::kRendezvous};
  });
}

}}  // namespace plumb::simulator
