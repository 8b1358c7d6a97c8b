#include "schedules/validate.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "schedules/action_graph.h"
#include "schedules/error.h"
#include "schedules/progress.h"
#include "schedules/rules/rules.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 15> kRuleNames = {
    "placement",       "foreign",        "misplaced", "doubled",  "missing",
    "order",           "mixed backward", "lane",      "pair",     "unmatched message",
    "missing message", "message order",  "optimizer", "sharding", "deadlock"};

void append(std::vector<Violation>& to, std::vector<Violation> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Rules of later kinds need what the earlier ones secure, so each kind runs only if all before it found nothing.
std::vector<Violation> unsorted_violations(const Schedule& schedule) {
  std::vector<Violation> found = placement_violations(schedule);
  if (found.empty()) found = action_violations(schedule);
  if (!found.empty()) return found;

  const RuleContext context(schedule);
  found = microbatch_violations(context);
  if (has_messages(schedule)) append(found, message_violations(context));
  append(found, weight_violations(context));
  if (found.empty() && !runs_to_end(schedule, context.table)) {
    const std::vector<std::int32_t> cycle = find_cycle(action_graph(schedule));
    found.push_back({.rule = Rule::kDeadlock, .message = "the schedule deadlocks: " + describe_cycle(schedule, cycle)});
  }
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

std::vector<Violation> validate(const Schedule& schedule) {
  std::vector<Violation> found = unsorted_violations(schedule);
  std::stable_sort(found.begin(), found.end(), [](const Violation& a, const Violation& b) {
    return std::tuple(a.rank, a.position) < std::tuple(b.rank, b.position);
  });
  return found;
}

void require_valid(const Schedule& schedule) {
  const std::vector<Violation> violations = validate(schedule);
  if (violations.empty()) return;
  const std::string more = violations.size() == 1 ? "" : fmt::format("; {} more violations", violations.size() - 1);
  throw ScheduleError(to_text(violations.front()) + more);
}

}  // namespace plumb
