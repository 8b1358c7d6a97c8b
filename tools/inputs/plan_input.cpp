#include "tools/inputs/plan_input.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
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
  std::optional<Schedule> order = take_order(question.layout);
  const ModelSpec model = model_input(question.model);
  const ClusterSpec cluster = cluster_input(question.cluster);
  const TrainingSpec training = training_input(question, model, cluster);
  const LayoutSpace space = space_input(question);
  PlannedQuestion planned{.pricing = Pricing(model, cluster, training, assumable_stacks(question)),
                          .order = std::move(order)};
  planned.search = search_layouts(planned.pricing, space, options, planned.order);
  if (!planned.search.ranked.empty() && space.offload.is_open() && !space.wide)
    planned.switched = offload_text(planned.search.ranked.front().layout);
  return planned;
}

Plan plan_of(const PlannedQuestion& planned, const Evaluation& ranked) {
  return plan_of(planned.pricing, ranked, planned.order);
}

}}  // namespace plumb::tools
