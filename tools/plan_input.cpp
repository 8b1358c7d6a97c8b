#include "tools/plan_input.h"

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
  for (const RankedLayout& ranked : planned.search.ranked) {
    Layout layout = ranked.layout;
    layout.split = ranked.split;
    planned.plans.push_back(
        {.model = model, .cluster = cluster, .training = training, .layout = layout, .prediction = ranked.prediction});
  }
  return planned;
}

}  // namespace plumb
