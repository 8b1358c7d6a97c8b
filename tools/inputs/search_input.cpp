#include "tools/inputs/search_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/search/searched_order.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/phases.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/placements.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/joined_costs.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::int64_t kActivation = 1000;  // units of memory, so that shares are whole numbers of them

Objective objective_of(const SearchArguments& search) {
  return search.objective == "makespan" ? Objective::kMakespan : Objective::kSpan;
}

/// Returns the memory of `most` [rank, or one for all] activations, where the activation of a stage counts as
/// `joined`.
ActivationMemory memory_of(const OrderQuestion& question, const std::vector<int>& most, double released, int joined) {
  const auto ranks = static_cast<std::size_t>(question.ranks);
  if (most.size() > 1 && most.size() != ranks) {
    throw UsageError(
        fmt::format("--max-activations has {} numbers for {} ranks: give one, or one for each", most.size(), ranks));
  }
  if (released > 0 && question.whole_backwards) {
    throw UsageError("--released-at-i is of split backwards, and these are whole: leave it away");
  }
  const std::size_t stages = question.frame.stages.size();
  ActivationMemory memory{.activation_bytes = std::vector<std::int64_t>(stages, kActivation * joined),
                          .released_at_input_grad_bytes = std::vector<std::int64_t>(
                              stages, std::llround(released * static_cast<double>(kActivation * joined)))};
  for (std::size_t r = 0; r < ranks; ++r) memory.max_bytes.push_back(kActivation * most[most.size() == 1 ? 0 : r]);
  return memory;
}

/// Returns the memory in bytes that a file of costs gives, by the stages of the table; without limits where it has none.
ActivationMemory bytes_of_file(const ScheduleVerbArguments& arguments, const CostsOption& costs,
                               const SearchQuestion& asked) {
  if (!arguments.max_activations.empty() || arguments.search.released_at_input_grad_ratio != 0) {
    throw UsageError(
        fmt::format("{} has its own memory: leave --max-activations and --released-at-i away", arguments.costs));
  }
  const auto ranks = static_cast<std::size_t>(asked.question.ranks);
  const std::vector<std::int64_t>& most = costs.memory.max_bytes;
  if (most.size() > 1 && most.size() != ranks) {
    throw SpecError(fmt::format("{}: max_activation_bytes has {} numbers for {} ranks: give one, or one for each",
                                arguments.costs, most.size(), ranks));
  }
  ActivationMemory memory{.max_bytes = most};
  if (most.size() == 1) memory.max_bytes.assign(ranks, most.front());
  for (const StageCosts& stage : asked.table.stages) {
    memory.activation_bytes.push_back(stage.memory.forward_bytes);
    memory.released_at_input_grad_bytes.push_back(stage.memory.released_at_input_grad_bytes);
  }
  return memory;
}

/// Returns the bytes of all micro-batches on each rank, which is no limit.
std::vector<std::int64_t> bytes_of_all(const OrderQuestion& question) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(question.ranks), 0);
  for (std::size_t s = 0; s < question.frame.stages.size(); ++s) {
    all[static_cast<std::size_t>(question.frame.stages[s].rank)] +=
        question.memory.activation_bytes[s] * question.frame.microbatches * question.slices;
  }
  return all;
}

/// Returns the most activations that a rank of the schedule holds.
int peak_activations(const Schedule& schedule) {
  int peak = 0;
  for (const RankLiveness& rank : liveness(schedule)) peak = std::max(peak, rank.peak);
  return peak;
}

/// True if an overlapped pair takes less time than its two actions one after the other, and is none of a forward and a
/// backward, which searches know.
bool gains_by_pairs(const Schedule& schedule, const CostTable& table) {
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
      if (!actions[i].overlaps_next) continue;
      const Op first = actions[i].op, second = actions[i + 1].op;
      if (first == Op::kForward && gives_input_gradient(second)) continue;
      if (second == Op::kForward && gives_input_gradient(first)) continue;
      const SimTime apart = duration_of(table, actions[i]) + duration_of(table, actions[i + 1]);
      if (pair_duration(table, actions[i], actions[i + 1]) < apart) return true;
    }
  }
  return false;
}

/// The question that a schedule of the catalogue or of a file asks.
SearchQuestion question_of_schedule(const ScheduleVerbArguments& arguments, const CostsOption& costs) {
  Schedule schedule = schedule_input(arguments.schedule, costs.chunk);
  SearchQuestion asked{.question = placed_question(schedule, objective_of(arguments.search)),
                       .table = costs_for(costs, schedule)};
  OrderQuestion& question = asked.question;
  question.costs = order_costs(asked.table, schedule.stages, question.whole_backwards);
  asked.starts.push_back(searchable_order(schedule, question));
  if (!costs.memory.activation_bytes.empty()) {
    question.memory = bytes_of_file(arguments, costs, asked);
    if (!question.memory.max_bytes.empty()) return asked;
    for (const std::vector<Action>& actions : asked.starts.front().ranks) {
      question.memory.max_bytes.push_back(peak_bytes(question.memory, actions));
    }
    return asked;
  }
  std::vector<int> most = arguments.max_activations;
  if (most.empty()) most.push_back(peak_activations(schedule));
  question.memory = memory_of(question, most, arguments.search.released_at_input_grad_ratio, 1);
  asked.activation_units = kActivation;
  return asked;
}

/// The question that a plan asks: the costs, the placement and the activations' memory of its own order.
SearchQuestion question_of_plan_file(const ScheduleVerbArguments& arguments) {
  refuse_numbers(arguments.schedule);
  refuse_lenient(arguments.schedule);
  if (!arguments.costs.empty() || !arguments.max_activations.empty() ||
      arguments.search.released_at_input_grad_ratio != 0) {
    throw UsageError(
        fmt::format("{} has its own costs and memory: leave --costs, --max-activations and "
                    "--released-at-i away",
                    arguments.schedule.name));
  }
  const Plan plan = plan_input(arguments.schedule.name);
  PlanQuestion asked = question_of_plan(plan, objective_of(arguments.search));
  const bool pairs_gain = gains_by_pairs(order_of(plan), asked.table);
  return {.question = std::move(asked.question),
          .table = std::move(asked.table),
          .starts = {std::move(asked.start)},
          .pairs_gain = pairs_gain};
}

/// The question for one placement of a model in parts, of which each rank has `chunks`.
SearchQuestion question_on(const NamedPlacement& placement, const ScheduleVerbArguments& arguments,
                           const CostsOption& of_parts, int chunks) {
  const int p = arguments.schedule.ranks;
  const auto parts = static_cast<std::size_t>(p) * static_cast<std::size_t>(chunks);
  const CostsOption costs = joined_costs(of_parts, parts, placement);
  Schedule frame{.name = placement.name,
                 .microbatches = arguments.schedule.microbatches,
                 .stages = placement.stages,
                 .ranks = std::vector<std::vector<Action>>(static_cast<std::size_t>(p))};
  SearchQuestion asked{.question = placed_question(frame, objective_of(arguments.search)),
                       .table = costs_for(costs, frame)};
  OrderQuestion& question = asked.question;
  question.whole_backwards = costs.whole_backward;
  question.costs = order_costs(asked.table, frame.stages, question.whole_backwards);
  if (!costs.memory.activation_bytes.empty()) {
    question.memory = bytes_of_file(arguments, costs, asked);
    if (question.memory.max_bytes.empty()) question.memory.max_bytes = bytes_of_all(question);
    return asked;
  }
  std::vector<int> most = arguments.max_activations;
  if (most.empty()) {
    most.push_back(static_cast<int>(arguments.schedule.memory_ratio * static_cast<double>(parts)));
  }
  const auto lanes = static_cast<std::size_t>(frame.stages.back().lane + 1);
  const auto joined_parts = static_cast<int>(parts * lanes / frame.stages.size());
  question.memory = memory_of(question, most, arguments.search.released_at_input_grad_ratio, joined_parts);
  asked.activation_units = kActivation;
  return asked;
}

std::vector<SearchQuestion> open_questions(const ScheduleVerbArguments& arguments, const CostsOption& costs,
                                           const std::string& placement) {
  const ScheduleArguments& schedule = arguments.schedule;
  if (schedule.ranks == 0 || schedule.microbatches == 0) {
    throw UsageError("schedule search: give ranks (-p) and micro-batches (-m), or a schedule or plan to begin with");
  }
  const int chunks = std::max(schedule.chunks, 1);
  std::vector<SearchQuestion> questions;
  for (const NamedPlacement& named : placements(placement, schedule.ranks, chunks)) {
    questions.push_back(question_on(named, arguments, costs, chunks));
  }
  if (questions.empty()) {
    throw UsageError(fmt::format("--placement {} is none of {} ranks with {} chunks each: give more chunks (-v)",
                                 placement, schedule.ranks, chunks));
  }
  return questions;
}

/// Throws UsageError for options that a schedule has, where none is given.
void refuse_options_of_schedules(const ScheduleArguments& arguments) {
  const ScheduleArguments none;
  const bool given = arguments.group != none.group || arguments.slices != none.slices ||
                     arguments.batch != none.batch || arguments.node_ranks != none.node_ranks ||
                     arguments.vertical_sync || arguments.lenient;
  if (!given) return;
  throw UsageError(
      "--group, --slices, --batch, --node-ranks, --vertical-sync and --lenient are of a schedule: give one, or leave "
      "them away");
}

/// ZB-auto is what the search itself makes on a chain.
SearchQuestion question_of_zb_auto(const ScheduleVerbArguments& arguments, const CostsOption& costs) {
  refuse_lenient(arguments.schedule);
  const CatalogueEntry& entry = checked_entry(arguments.schedule.name, parameters_of(arguments.schedule, costs.chunk));
  if (costs.whole_backward) {
    throw SpecError(fmt::format("--costs: b= prices whole backwards, but {} splits them: give i= and w=", entry.name));
  }
  std::vector<SearchQuestion> questions = open_questions(arguments, costs, "chain");
  questions.front().question.frame.name = entry.name;
  return std::move(questions.front());
}

}  // namespace

std::vector<SearchQuestion> search_questions(const ScheduleVerbArguments& arguments, const CostsOption& costs) {
  const std::string& name = arguments.schedule.name;
  const std::string& placement = arguments.search.placement;
  if (name.empty()) {
    refuse_options_of_schedules(arguments.schedule);
    return open_questions(arguments, costs, placement.empty() ? "any" : placement);
  }
  if (!placement.empty()) {
    throw UsageError(fmt::format("{} has its own placement: leave --placement away, or the schedule", name));
  }
  if (names_schedule_file(name) && is_of_kind(FileKind::kPlan, name)) {
    return {question_of_plan_file(arguments)};
  }
  if (!names_schedule_file(name) && catalogue_entry(name).takes_memory) return {question_of_zb_auto(arguments, costs)};
  return {question_of_schedule(arguments, costs)};
}

}}  // namespace plumb::tools
