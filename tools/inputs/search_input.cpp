#include "tools/inputs/search_input.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/plan.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/placements.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::int64_t kActivation = 1000;  // units of memory, so that shares are whole numbers of them

/// True if no backward of the schedule is split.
bool has_whole_backwards(const Schedule& schedule) {
  return std::ranges::none_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::find(actions, Op::kInputGrad, &Action::op) != actions.end();
  });
}

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

/// Returns the most activations that a rank of the schedule holds.
int peak_activations(const Schedule& schedule) {
  int peak = 0;
  for (const RankLiveness& rank : liveness(schedule)) peak = std::max(peak, rank.peak);
  return peak;
}

Schedule frame_of(const Schedule& schedule) {
  return {.name = schedule.name, .microbatches = schedule.microbatches, .stages = schedule.stages};
}

/// Returns the order that a search begins with. Throws ScheduleError if the schedule has more than orders
/// have.
Schedule searchable(const Schedule& schedule, const OrderQuestion& question) {
  Schedule start = as_searched(schedule, question);
  if (action_count(start) == action_count(serial_order(question))) return start;
  throw ScheduleError(fmt::format(
      "{} cannot be searched: give F, B, I and W of every stage and micro-batch, without slices, moves or messages",
      schedule.name));
}

/// The question that a schedule of the catalogue or of a file asks.
SearchQuestion question_of_schedule(const ScheduleVerbArguments& arguments, const CostsOption& costs) {
  Schedule schedule = schedule_input(arguments.schedule, costs.chunk);
  SearchQuestion asked{.question = {.frame = frame_of(schedule),
                                    .ranks = static_cast<int>(schedule.ranks.size()),
                                    .whole_backwards = has_whole_backwards(schedule),
                                    .objective = objective_of(arguments.search)},
                       .table = costs_for(costs, schedule)};
  OrderQuestion& question = asked.question;
  question.costs = order_costs(asked.table, schedule.stages, question.whole_backwards);
  std::vector<int> most = arguments.max_activations;
  if (most.empty()) most.push_back(peak_activations(schedule));
  question.memory = memory_of(question, most, arguments.search.released_at_input_grad_ratio, 1);
  asked.starts.push_back(searchable(schedule, question));
  return asked;
}

/// The question that a plan asks: the costs, the placement and the activations' memory of its own order.
SearchQuestion question_of_plan(const ScheduleVerbArguments& arguments) {
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
  Schedule schedule = order_of(plan);
  Pricing pricing(plan.model, plan.cluster, plan.training);
  SearchQuestion asked{.question = {.frame = frame_of(schedule),
                                    .ranks = static_cast<int>(schedule.ranks.size()),
                                    .whole_backwards = has_whole_backwards(schedule),
                                    .objective = objective_of(arguments.search)},
                       .table = cost_table(price_layout(pricing, plan.layout, schedule))};
  OrderQuestion& question = asked.question;
  question.costs = order_costs(asked.table, schedule.stages, question.whole_backwards);
  for (const StageCosts& stage : asked.table.stages) {
    const std::int64_t bytes = stage.memory.forward_bytes;
    question.memory.activation_bytes.push_back(bytes);
    question.memory.released_at_input_grad_bytes.push_back(std::min(bytes, stage.memory.released_at_input_grad_bytes));
  }
  Schedule start = searchable(schedule, question);
  for (const std::vector<Action>& actions : start.ranks) {
    question.memory.max_bytes.push_back(peak_bytes(question.memory, actions));
  }
  asked.starts.push_back(std::move(start));
  return asked;
}

/// Returns the costs of stages that join neighbouring parts of the model, lane by lane.
std::vector<Seconds> joined(const std::vector<Seconds>& costs, std::size_t parts, const NamedPlacement& placement) {
  if (costs.size() != 1 && costs.size() != parts) {
    throw SpecError(
        fmt::format("--costs has a list of {} entries for {} parts of the model, which are -p times -v: "
                    "give one, or one for each",
                    costs.size(), parts));
  }
  std::size_t of_lane = 0;
  for (const StagePlace& place : placement.stages) of_lane += place.lane == 0 ? 1 : 0;
  std::vector<Seconds> sums;
  for (const StagePlace& place : placement.stages) {
    const std::size_t first = static_cast<std::size_t>(place.model_part) * parts / of_lane;
    Seconds sum{0};
    for (std::size_t part = first; part < first + parts / of_lane; ++part) sum += costs[costs.size() == 1 ? 0 : part];
    sums.push_back(sum);
  }
  return sums;
}

/// The question for one placement of a model in parts, of which each rank has `chunks`.
SearchQuestion question_on(const NamedPlacement& placement, const ScheduleVerbArguments& arguments, CostsOption costs,
                           int chunks) {
  const int p = arguments.schedule.ranks;
  const auto parts = static_cast<std::size_t>(p) * static_cast<std::size_t>(chunks);
  for (std::vector<Seconds>* list : {&costs.chunk.forward, &costs.chunk.input_grad, &costs.chunk.weight_grad}) {
    *list = joined(*list, parts, placement);
  }
  if (costs.whole_backward) costs.chunk.backward = joined(costs.chunk.backward, parts, placement);
  Schedule frame{.name = placement.name,
                 .microbatches = arguments.schedule.microbatches,
                 .stages = placement.stages,
                 .ranks = std::vector<std::vector<Action>>(static_cast<std::size_t>(p))};
  SearchQuestion asked{.question = {.frame = frame_of(frame),
                                    .ranks = p,
                                    .whole_backwards = costs.whole_backward,
                                    .objective = objective_of(arguments.search)},
                       .table = costs_for(costs, frame)};
  OrderQuestion& question = asked.question;
  question.costs = order_costs(asked.table, frame.stages, question.whole_backwards);
  std::vector<int> most = arguments.max_activations;
  if (most.empty()) {
    most.push_back(static_cast<int>(arguments.schedule.memory_ratio * static_cast<double>(parts)));
  }
  const auto lanes = static_cast<std::size_t>(frame.stages.back().lane + 1);
  const auto joined_parts = static_cast<int>(parts * lanes / frame.stages.size());
  question.memory = memory_of(question, most, arguments.search.released_at_input_grad_ratio, joined_parts);
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
                     arguments.batch != none.batch || arguments.vertical_sync || arguments.lenient;
  if (!given) return;
  throw UsageError(
      "--group, --slices, --batch, --vertical-sync and --lenient are of a schedule: give one, or leave them away");
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
    return {question_of_plan(arguments)};
  }
  if (!names_schedule_file(name) && catalogue_entry(name).takes_memory) return {question_of_zb_auto(arguments, costs)};
  return {question_of_schedule(arguments, costs)};
}

}}  // namespace plumb::tools
