#include "schedules/rules/validate.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "schedules/dependencies/action_graph.h"
#include "schedules/dependencies/progress.h"
#include "schedules/error.h"
#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::array<std::string_view, 18> kRuleNames = {
    "placement",       "foreign",        "misplaced", "doubled", "missing",
    "order",           "mixed backward", "lane",      "pair",    "unmatched message",
    "missing message", "message order",  "optimizer", "version", "sharding",
    "memory",          "moved",          "deadlock"};

void append(std::vector<Violation>& to, std::vector<Violation> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Messages placed as the rules demand close no cycle unless a send holds its rank (schedules/dependencies/progress.h).
std::vector<Violation> deadlock_violations(const Schedule& schedule, const ActionTable& table, Sends sends) {
  if (sends != Sends::kBlocking && runs_to_end(schedule, table)) return {};
  const std::vector<std::int32_t> cycle = find_cycle(action_graph(schedule, sends));
  if (cycle.empty()) return {};
  const char* when = sends == Sends::kBlocking ? " where a send holds its rank" : "";
  return {{.rule = Rule::kDeadlock,
           .message = fmt::format("the schedule deadlocks{}: {}", when, describe_cycle(schedule, cycle))}};
}

/// Rules of later kinds need what the earlier ones secure, so each kind runs only if all before it found nothing.
std::vector<Violation> unsorted_violations(const Schedule& schedule, const ValidationLimits& limits) {
  std::vector<Violation> found = placement_violations(schedule);
  if (found.empty()) found = action_violations(schedule);
  if (found.empty()) found = size_violations(schedule);
  if (!found.empty()) return found;

  const RuleContext context(schedule);
  found = microbatch_violations(context);
  if (has_messages(schedule)) append(found, message_violations(context));
  append(found, weight_violations(context));
  append(found, weight_message_violations(schedule));
  append(found, move_violations(context));
  if (found.empty()) append(found, version_violations(context));
  if (found.empty()) append(found, deadlock_violations(schedule, context.table, limits.sends));
  append(found, memory_violations(schedule, limits.max_activations));
  return found;
}

}  // namespace

std::string_view rule_name(Rule rule) {
  return kRuleNames[static_cast<std::size_t>(rule)];
}

std::string to_text(const Violation& violation) {
  std::string place;
  if (violation.rank >= 0) place = fmt::format("rank {}", violation.rank);
  if (violation.position >= 0) place += fmt::format(", position {}", violation.position);
  return fmt::format("{}{}{} ({})", place, place.empty() ? "" : ": ", violation.message, rule_name(violation.rule));
}

std::vector<Violation> validate(const Schedule& schedule, const ValidationLimits& limits) {
  std::vector<Violation> found = unsorted_violations(schedule, limits);
  std::stable_sort(found.begin(), found.end(), [](const Violation& a, const Violation& b) {
    return std::tuple(a.rank, a.position) < std::tuple(b.rank, b.position);
  });
  return found;
}

void require_valid(const Schedule& schedule, const ValidationLimits& limits) {
  const std::vector<Violation> violations = validate(schedule, limits);
  if (violations.empty()) return;
  const std::string more = violations.size() == 1 ? "" : fmt::format("; {} more violations", violations.size() - 1);
  throw ScheduleError(to_text(violations.front()) + more);
}

}}  // namespace plumb::schedules
