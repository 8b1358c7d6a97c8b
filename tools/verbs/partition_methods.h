#pragma once
// The methods by which frameworks cut a graph into stages, beside Plumb's own.
//
//   time         the slowest stage is the fastest that it can be (planner/partition/chain_partition.h)
//   parameters, uniform, type:REGEX
//                DeepSpeed's partition methods: weights, numbers of nodes, or numbers of nodes of such a name or operator
//                are made even (deepspeed/runtime/pipe/module.py)

#include <string>
#include <vector>

#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// Returns the number of nodes of each stage; empty for "time", which is the planner's own. Throws UsageError for another
/// word, and InputError where no node fits the expression.
std::vector<int> split_by_method(const std::string& method, const std::vector<GraphNode>& nodes, int stages);

struct MethodAnswer {
  std::string method;
  std::vector<int> split;
  double step_seconds = 0;
  bool fits = true;
};

/// Returns the predicted step of the plan under each of DeepSpeed's methods, its own split and `asked`, quickest first.
std::vector<MethodAnswer> compared_methods(const Plan& plan, const std::vector<GraphNode>& nodes, int stages,
                                           const std::string& asked);

}}  // namespace plumb::tools
