#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/synthesis/listed_chain.h"

namespace plumb { inline namespace schedules {
namespace {

OrderQuestion question_of(const ScheduleParameters& parameters) {
  if (!(parameters.memory_ratio >= 1)) {
    throw ScheduleError(
        fmt::format("zb-auto cannot hold {} times as many activations as there are ranks: give 1 or more",
                    parameters.memory_ratio));
  }
  const double released = parameters.released_at_input_grad_ratio;
  if (!(released >= 0 && released < 1)) {
    throw ScheduleError(fmt::format(
        "an input gradient cannot free {} of an activation and leave the rest to W: give 0 or more, below 1",
        released));
  }
  constexpr std::int64_t kActivation = 1000;  // units of memory, so that shares are whole numbers of them
  const int p = parameters.ranks;
  const double held = std::min<double>(parameters.memory_ratio * p, parameters.microbatches);
  const auto of_each = [p](std::int64_t bytes) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(p), bytes);
  };
  OrderQuestion question{
      .frame = {.name = "zb-auto", .microbatches = parameters.microbatches, .stages = loop_placement(p, p)},
      .ranks = p,
      .memory = {.activation_bytes = of_each(kActivation),
                 .released_at_input_grad_bytes = of_each(std::llround(released * kActivation)),
                 .max_bytes = of_each(static_cast<std::int64_t>(held * kActivation))}};
  question.costs = order_costs(chunk_cost_table(p, parameters.costs), question.frame.stages);
  return question;
}

}  // namespace

Schedule zb_auto_schedule(const ScheduleParameters& parameters) {
  const OrderQuestion question = question_of(parameters);
  return list_chain(question, best_bound(question).time).schedule;
}

}}  // namespace plumb::schedules
