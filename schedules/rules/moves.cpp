#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {
namespace {

/// Says where the activations of one (stage, micro-batch, slice) are, by the actions that their rank has listed so far.
struct Whereabouts {
  std::int64_t made_at = -1;      // position of F
  std::int64_t backward_at = -1;  // position of the first R, I or B
  std::int64_t taken_at = -1;     // position of the OFFLOAD or EVICT after which they are away
  Op taken_by = Op::kOffload;
};

Op return_of(Op taken_by) {
  return taken_by == Op::kOffload ? Op::kReload : Op::kLoad;
}

std::string token(Op op, const Action& of) {
  return to_text({.op = op, .part = of.part, .stage = of.stage, .microbatch = of.microbatch});
}

bool has_backward(const RuleContext& c, const Action& a) {
  return c.table.find(Op::kBackward, a.stage, a.microbatch, a.part) != ActionTable::kNone ||
         c.table.find(Op::kInputGrad, a.stage, a.microbatch, a.part) != ActionTable::kNone;
}

/// Returns what is wrong with taking these activations away here, or an empty string.
std::string fault_of_taking(const RuleContext& c, const Action& a, const Whereabouts& at) {
  const std::string name = to_text(a);
  if (at.made_at < 0)
    return fmt::format("{} moves activations that {} has not made; list it behind", name, token(Op::kForward, a));
  if (at.taken_at >= 0)
    return fmt::format("{} moves activations that {} (position {}) has taken away; remove one", name,
                       token(at.taken_by, a), at.taken_at);
  if (at.backward_at >= 0)
    return fmt::format("{} moves activations whose backward begins at position {}; list it ahead", name,
                       at.backward_at);
  if (!has_backward(c, a)) return fmt::format("{} moves activations that no backward needs; remove it", name);
  return {};
}

}  // namespace

std::vector<Violation> move_violations(const RuleContext& c) {
  const auto is_listed = [&c](Op op) { return c.lists(op); };
  if (std::ranges::none_of(std::array{Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad}, is_listed)) return {};
  Findings found;
  const auto microbatches = static_cast<std::size_t>(c.schedule.microbatches);
  const auto parts = static_cast<std::size_t>(c.table.parts());
  std::vector<Whereabouts> whereabouts(c.schedule.stages.size() * microbatches * parts);
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    if (!has_microbatch(a.op) || is_message(a.op)) return;
    Whereabouts& at = whereabouts[(a.stage * microbatches + a.microbatch) * parts + a.part];
    if (a.op == Op::kForward) {
      at.made_at = i;
    } else if (takes_away(a.op)) {
      const std::string fault = fault_of_taking(c, a, at);
      if (!fault.empty()) return found.report(r, i, Rule::kMoved, fault);
      at.taken_at = i;
      at.taken_by = a.op;
      if (a.op != Op::kEvict || 2 * r + 1 != static_cast<int>(c.schedule.ranks.size())) return;
      found.report(r, i, Rule::kMoved,
                   fmt::format("{} moves activations to the partner rank, but rank {} is its own; use {} instead",
                               to_text(a), r, token(Op::kOffload, a)));
    } else if (brings_back(a.op)) {
      if (at.taken_at < 0 || return_of(at.taken_by) != a.op) {
        const Op taker = a.op == Op::kReload ? Op::kOffload : Op::kEvict;
        found.report(r, i, Rule::kMoved,
                     fmt::format("{} brings back activations that no {} ahead of it has taken away; add that, or "
                                 "remove it",
                                 to_text(a), token(taker, a)));
      }
      at.taken_at = -1;
    } else {
      if (at.taken_at >= 0) {
        found.report(r, i, Rule::kMoved,
                     fmt::format("{} needs activations that {} (position {}) has taken away; list {} ahead of it",
                                 to_text(a), token(at.taken_by, a), at.taken_at, token(return_of(at.taken_by), a)));
      }
      at.taken_at = -1;
      if (at.backward_at < 0) at.backward_at = i;
    }
  });
  return found.take();
}

}}  // namespace plumb::schedules
