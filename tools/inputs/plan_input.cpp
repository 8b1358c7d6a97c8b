#include "tools/inputs/plan_input.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {
namespace {

/// The schedule that the layout's `schedule=` names as a file, which is taken out of the text; none if it names none.
std::optional<Schedule> take_order(std::string& layout) {
  constexpr std::string_view kKey = "schedule=";
  std::size_t start = layout.starts_with(kKey) ? 0 : layout.find("," + std::string(kKey));
  if (start == std::string::npos) return {};
  const std::size_t value = layout.find('=', start) + 1;
  const std::size_t end = std::min(layout.find(',', value), layout.size());
  const std::string name = layout.substr(value, end - value);
  if (!names_schedule_file(name)) return {};
  layout.erase(start, end - start);
  if (layout.starts_with(',')) layout.erase(0, 1);
  return schedule_input({.name = name});
}

/// What the layouts of an order have in common. Throws SpecError if the request says otherwise.
LayoutRequest request_for(LayoutRequest request, const Schedule& order) {
  const int ranks = static_cast<int>(order.ranks.size());
  const int chunks = static_cast<int>(order.stages.size()) / ranks;
  if (request.pipeline.value_or(ranks) != ranks || request.chunks.value_or(chunks) != chunks) {
    throw SpecError(fmt::format("schedule {} has {} ranks with {} stages each: leave pp and v away, or give those",
                                order.name, ranks, chunks));
  }
  request.pipeline = ranks;
  request.chunks = chunks;
  request.schedule =
      chunks > 1 ? "interleaved" : "1f1b";  // of the same stages, for the search; the order comes behind it
  return request;
}

/// Keeps the layouts that make as many micro-batches as the order has.
void keep_those_of(const Schedule& order, const TrainingSpec& training, SearchResult& search) {
  std::erase_if(search.ranked, [&](const RankedLayout& ranked) {
    return microbatches_of(training, ranked.layout) != order.microbatches;
  });
  if (!search.ranked.empty() || !search.infeasible.empty()) return;
  search.infeasible = fmt::format(
      "schedule {} has {} micro-batches, which no layout that fits makes of a batch of {}: give a multiple of {} as "
      "--global-batch, with dp x mbs = --global-batch / {}",
      order.name, order.microbatches, training.global_batch, order.microbatches, order.microbatches);
}

/// Returns what the search switched to because nothing fits otherwise.
std::string offload_text(const Layout& layout) {
  if (layout.offload == Offload{}) return {};
  return fmt::format(
      "nothing fits the devices alone: {} waits in the hosts' memory (offload={})",
      layout.offload.activations ? "the optimizer's state and what is saved for the backward" : "the optimizer's state",
      offload_name(layout.offload));
}

}  // namespace

Plan plan_input(const std::string& path) {
  return read_as(FileKind::kPlan, path, [&] { return parse_plan(read_text_file(path), path); });
}

PlannedQuestion plan_question(const QuestionArguments& asked, const SearchOptions& options) {
  QuestionArguments question = asked;
  const std::optional<Schedule> order = take_order(question.layout);
  const ModelSpec model = model_input(question.model);
  const ClusterSpec cluster = cluster_input(question.cluster);
  const TrainingSpec training = training_input(question, model, cluster);
  LayoutRequest request = layout_input(question);
  SearchOptions kept = options;
  if (order) {
    request = request_for(std::move(request), *order);
    kept.keep = std::numeric_limits<int>::max();
  }
  PlannedQuestion planned{.search = search_layouts(model, cluster, training, request, kept)};
  if (order) keep_those_of(*order, training, planned.search);
  // The search gave every transfer its links to itself; what is promised is what `simulate` says.
  const auto plan_of = [&](const RankedLayout& ranked) {
    Layout layout = ranked.layout;
    layout.split = ranked.split;
    if (order) layout.schedule = order->name;
    return Plan{.model = model,
                .cluster = cluster,
                .training = training,
                .layout = layout,
                .order = order,
                .prediction = ranked.prediction};
  };
  std::vector<RankedLayout> feasible;
  for (RankedLayout& ranked : planned.search.ranked) {
    const Evaluation evaluation = evaluate(plan_of(ranked), {.record_timeline = false});
    if (!evaluation.infeasible.empty()) {
      planned.search.infeasible = evaluation.infeasible;
      continue;
    }
    ranked.prediction = evaluation.predicted->prediction;
    feasible.push_back(std::move(ranked));
  }
  planned.search.ranked = std::move(feasible);
  std::ranges::stable_sort(planned.search.ranked, {},
                           [](const RankedLayout& ranked) { return ranked.prediction.step_time; });
  if (std::ssize(planned.search.ranked) > options.keep) planned.search.ranked.resize(options.keep);
  for (const RankedLayout& ranked : planned.search.ranked) planned.plans.push_back(plan_of(ranked));
  if (!planned.plans.empty() && !request.offload) planned.switched = offload_text(planned.plans.front().layout);
  return planned;
}

}}  // namespace plumb::tools
