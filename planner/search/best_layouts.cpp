#include "planner/search/best_layouts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// The request for layouts of the order's ranks and stages. Throws SpecError if it asks for others.
LayoutRequest request_for(LayoutRequest request, const Schedule& order) {
  const int ranks = static_cast<int>(order.ranks.size());
  const int chunks = static_cast<int>(order.stages.size()) / ranks;
  if (request.pipeline.value_or(ranks) != ranks || request.chunks.value_or(chunks) != chunks) {
    throw SpecError(fmt::format("schedule {} has {} ranks with {} stages each: leave pp and v away, or give those",
                                order.name, ranks, chunks));
  }
  request.pipeline = ranks;
  request.chunks = chunks;
  request.schedule = chunks > 1 ? "interleaved" : "1f1b";  // of the same stages: the order itself is evaluated later
  return request;
}

/// Keeps the layouts that make as many micro-batches as the order has.
SearchResult with_microbatches_of(const Schedule& order, const TrainingSpec& training, SearchResult search) {
  std::erase_if(search.ranked, [&](const Evaluation& ranked) {
    return microbatches_of(training, ranked.layout) != order.microbatches;
  });
  if (search.ranked.empty() && search.infeasible.empty()) {
    search.infeasible = fmt::format(
        "schedule {} has {} micro-batches, which no layout that fits makes of a batch of {}: give a multiple of {} as "
        "--global-batch, with dp x mbs = --global-batch / {}",
        order.name, order.microbatches, training.global_batch, order.microbatches, order.microbatches);
  }
  return search;
}

}  // namespace

Plan plan_of(const Pricing& pricing, const Evaluation& evaluation, const std::optional<Schedule>& order) {
  Layout layout = evaluation.layout;
  layout.split = evaluation.priced.split;
  if (order) layout.schedule = order->name;
  TrainingSpec training = pricing.training_in(layout);
  return {.model = pricing.model(),
          .cluster = pricing.cluster(),
          .training = std::move(training),
          .layout = std::move(layout),
          .order = order,
          .prediction = prediction_of(evaluation)};
}

SearchResult best_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  SearchOptions searched = options;
  if (order) searched.keep = std::numeric_limits<int>::max();
  SearchResult result = search_layouts(pricing, order ? request_for(request, *order) : request, searched);
  if (order) result = with_microbatches_of(*order, pricing.training(), std::move(result));
  std::vector<Evaluation> feasible;
  for (Evaluation& ranked : result.ranked) {
    const Plan plan = plan_of(pricing, ranked, order);
    std::optional<PricedLayout>
        priced;  // the search has priced other actions than those of a schedule of the user's own
    if (!order) priced = std::move(ranked.priced);
    Evaluation evaluation = evaluate(pricing, plan, std::move(priced),
                                     {.simulation = {.record_timeline = false}, .network = NetworkOptions{}});
    if (evaluation.infeasible.empty())
      feasible.push_back(std::move(evaluation));
    else
      result.infeasible = evaluation.infeasible;
  }
  std::ranges::stable_sort(feasible, {}, [](const Evaluation& evaluation) { return evaluation.simulation.makespan; });
  if (std::ssize(feasible) > options.keep) feasible.resize(options.keep);
  result.ranked = std::move(feasible);
  return result;
}

}}  // namespace plumb::planner
