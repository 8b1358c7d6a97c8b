#include "tools/verbs/partition_methods.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "planner/partition/chain_partition.h"
#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "schedules/pattern.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {

std::vector<int> split_by_method(const std::string& method, const std::vector<GraphNode>& nodes, int stages) {
  constexpr std::string_view kType = "type:";
  std::vector<Seconds> weights;
  if (method == "time") return {};
  if (method == "uniform") {
    weights.assign(nodes.size(), Seconds{1});
  } else if (method == "parameters") {
    for (const GraphNode& node : nodes) weights.emplace_back(static_cast<double>(parameter_count(node)));
  } else if (method.starts_with(kType)) {
    const Pattern wanted = read_option([&] { return Pattern(method.substr(kType.size()), "--method " + method); });
    for (const GraphNode& node : nodes)
      weights.emplace_back(wanted.found_in(node.name) || wanted.found_in(node.op) ? 1.0 : 0.0);
    if (std::ranges::none_of(weights, [](Seconds weight) { return weight.count() > 0; }))
      throw InputError(
          fmt::format("--method {}: no node has such a name or operator: `plumb models NAME` shows them", method));
  } else {
    throw UsageError(fmt::format("--method {}: give time, parameters, uniform or type:REGEX", method));
  }
  return *chain_partition({.seconds = weights}, {.parts = stages});
}

std::vector<MethodAnswer> compared_methods(const Plan& plan, const std::vector<GraphNode>& nodes, int stages,
                                           const std::string& asked) {
  std::vector<MethodAnswer> answers;
  for (const std::string& method : std::set<std::string>{"time", "parameters", "uniform", asked}) {
    Plan other = plan;
    other.layout.split = split_by_method(method, nodes, stages);
    const Evaluation evaluation = evaluate(other, {.record_timeline = false});
    answers.push_back({.method = method,
                       .split = evaluation.priced.split,
                       .step_seconds = step_time(evaluation.simulation).count(),
                       .fits = evaluation.infeasible.empty()});
  }
  std::ranges::stable_sort(answers, {}, &MethodAnswer::step_seconds);
  return answers;
}

}}  // namespace plumb::tools
