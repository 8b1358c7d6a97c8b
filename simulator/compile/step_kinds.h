#pragma once
// Numbers the kinds of steps while a schedule is compiled: equal operations of equal stages are one kind.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/compile/compiled_schedule.h"

namespace plumb { inline namespace simulator {

class StepKinds {
 public:
  /// Throws ScheduleError if an action names a stage, micro-batch or part that the schedule does not have, or is on
  /// another rank than its stage.
  explicit StepKinds(const Schedule& schedule);

  /// Returns the number of sequence slices: 1 + the largest part of any action with a micro-batch.
  int parts() const { return parts_; }
  std::int64_t compute_actions() const { return compute_actions_; }

  /// Returns the kind of one or two compute actions, and the send that departs behind them, if any. `make` gives the
  /// registers of a kind that is met for the first time.
  template <typename Make>
  std::uint32_t compute(std::span<const Action> actions, const std::array<bool, 2>& recomputed, const Action* send,
                        Make make) {
    const std::uint64_t second = actions.size() > 1 ? index_of(actions[1]) + 1 : 0;
    const std::uint64_t sent =
        send == nullptr ? 0 : 2 * static_cast<std::uint64_t>(send->stage) + (send->op == Op::kSendGradient ? 2 : 1);
    const std::uint64_t rest = second << 32 | sent << 2 | (recomputed[0] ? 1U : 0U) | (recomputed[1] ? 2U : 0U);
    std::vector<Variant>& variants = variants_[index_of(actions[0])];
    for (const Variant& variant : variants) {
      if (variant.rest == rest) return variant.kind;
    }
    StepKind kind = make();
    kind.actions.assign(actions.begin(), actions.end());
    kind.recomputed = recomputed;
    kind.sends = send != nullptr;
    if (send != nullptr) kind.send = *send;
    variants.push_back({rest, add(kind)});
    return variants.back().kind;
  }

  /// Returns the kind of one action beside the compute.
  template <typename Make>
  std::uint32_t beside(const Action& action, Make make) {
    return compute({&action, 1}, {}, nullptr, make);
  }

  /// Returns the kind of a REDUCE_GRAD that starts inside `host`.
  template <typename Make>
  std::uint32_t inside(const Action& reduction, const Action& host, Make make) {
    std::vector<Variant>& variants = variants_[index_of(reduction)];
    for (const Variant& variant : variants) {
      if (variant.rest == kInside && kinds_[variant.kind].host.op == host.op &&
          kinds_[variant.kind].host.part == host.part)
        return variant.kind;
    }
    StepKind kind = make();
    kind.actions.assign(1, reduction);
    kind.host = host;
    kind.starts_inside = true;
    variants.push_back({kInside, add(kind)});
    return variants.back().kind;
  }

  /// Returns the kind of `member`'s part in a collective of copies, all of whose actions are `members`.
  template <typename Make>
  std::uint32_t joint(const Action& member, std::span<const Action> members, Make make) {
    std::vector<Variant>& variants = variants_[index_of(member)];
    for (const Variant& variant : variants) {
      const StepKind& kind = kinds_[variant.kind];
      if (kind.lasts_longest && std::ranges::equal(kind.actions, members)) return variant.kind;
    }
    StepKind kind = make();
    kind.actions.assign(members.begin(), members.end());
    kind.lasts_longest = true;
    variants.push_back({kJoint, add(kind)});
    return variants.back().kind;
  }

  /// Returns the kind of a message of weights, or of the RESHARD behind it, that is ready when register `from` says so.
  template <typename Make>
  std::uint32_t travelling(const Action& action, Register from, Make make) {
    std::vector<Variant>& variants = variants_[index_of(action)];
    for (const Variant& variant : variants) {
      const StepKind& kind = kinds_[variant.kind];
      if (variant.rest == kTravelling && kind.from == from && kind.actions.front().peer == action.peer)
        return variant.kind;
    }
    StepKind kind = make();
    kind.actions.assign(1, action);
    variants.push_back({kTravelling, add(kind)});
    return variants.back().kind;
  }

  /// Returns the kind of a send by itself, which is ready when register `from` says so.
  std::uint32_t transfer(const Action& send, Register from, Register channel);

  /// Returns the kind that hands on the later of register `from` and the step's input, to register `to` and to the
  /// step's output. The output's reader waits for the same action as the step, or for `output_reason`.
  std::uint32_t copy(Register from, Register to, Reason output_reason = Reason::kIssue);

  /// Returns the kind that marks the moment at which a receive is issued.
  std::uint32_t issue_of_receive(int rank);

  /// Counts one more step of that kind.
  void count(std::uint32_t kind) { ++kinds_[kind].steps; }

  std::vector<StepKind> take() { return std::move(kinds_); }

 private:
  static constexpr std::uint64_t kJoint = ~std::uint64_t{0};
  static constexpr std::uint64_t kInside = kJoint - 1;
  static constexpr std::uint64_t kTravelling = kInside - 1;

  /// A kind among those whose first action is the same.
  struct Variant {
    std::uint64_t rest = 0;  ///< the further properties, which tell them apart
    std::uint32_t kind = 0;
  };
  /// A kind without an action, among those with the same first register.
  struct Plain {
    Register from = 0;
    Register other = 0;
    Reason reason = Reason::kIssue;
    std::uint32_t kind = 0;
  };

  std::size_t index_of(const Action& action) const {
    const OpRange& range = ops_[static_cast<std::size_t>(action.op)];
    return range.first + static_cast<std::size_t>(action.stage) * range.parts + static_cast<std::size_t>(action.part);
  }
  std::uint32_t add(const StepKind& kind) {
    kinds_.push_back(kind);
    return static_cast<std::uint32_t>(kinds_.size() - 1);
  }
  /// Returns the number of the kind that `wanted` describes, in `plain[row]`; `make` makes it if it is not there.
  template <typename Make>
  std::uint32_t find_plain(std::vector<std::vector<Plain>>& plain, std::size_t row, const Plain& wanted, Make make);

  struct OpRange {
    std::size_t first = 0;
    std::size_t parts = 0;
  };
  int parts_ = 1;
  std::int64_t compute_actions_ = 0;
  std::array<OpRange, kOpCount> ops_{};
  std::vector<std::vector<Variant>> variants_;  ///< [index_of(first action)]
  std::vector<std::vector<Plain>> transfers_;   ///< [2 * stage + (gradient ? 1 : 0)]
  std::vector<std::vector<Plain>> copies_;      ///< [register]
  std::vector<std::vector<Plain>> receives_;    ///< [rank]
  std::vector<StepKind> kinds_;
};

}}  // namespace plumb::simulator
