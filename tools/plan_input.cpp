#include "tools/plan_input.h"

#include <algorithm>

#include "tools/files.h"
#include "tools/inputs.h"

namespace plumb {

Plan plan_input(const std::string& path) {
  return parse_plan(read_text_file(path), path);
}

PlannedQuestion plan_question(const QuestionArguments& question, const SearchOptions& options) {
  const ModelSpec model = model_input(question.model);
  const ClusterSpec cluster = cluster_input(question.cluster);
  const TrainingSpec training = training_input(question, model, cluster);
  PlannedQuestion planned{.search = search_layouts(model, cluster, training, layout_input(question), options)};
  // The search gave every transfer its links to itself; what is promised is what `simulate` says.
  const auto plan_of = [&](const RankedLayout& ranked) {
    Layout layout = ranked.layout;
    layout.split = ranked.split;
    return Plan{
        .model = model, .cluster = cluster, .training = training, .layout = layout, .prediction = ranked.prediction};
  };
  for (RankedLayout& ranked : planned.search.ranked)
    ranked.prediction = evaluate(plan_of(ranked), {.record_timeline = false}).predicted->prediction;
  std::ranges::stable_sort(planned.search.ranked, {},
                           [](const RankedLayout& ranked) { return ranked.prediction.step_time; });
  for (const RankedLayout& ranked : planned.search.ranked) planned.plans.push_back(plan_of(ranked));
  return planned;
}

}  // namespace plumb
