#pragma once
// The cheapest choice for each of many variables, whose costs are those of single choices and of pairs: the question
// behind Alpa's intra-operator pass (Zheng et al. 2022, section 4.2).
//
// Variables are eliminated one by one (Dechter 1999, bucket elimination): the costs of a variable become a table over its
// neighbours, of which there are few in a network that is nearly a chain. That is exact. Where a table would have more
// than `most_entries`, its costs are divided among smaller tables (Dechter & Rish 2003, mini-buckets): the answer is then
// improved choice by choice, and a bound says how much cheaper another one could be at most.

#include <cstddef>
#include <vector>

namespace plumb { inline namespace planner {

/// Costs of the choices of two variables together.
struct PairCost {
  int first = 0, second = 0;  ///< different variables
  std::vector<double> costs;  ///< [choice of first][choice of second]
};

struct AssignmentProblem {
  std::vector<std::vector<double>> costs;  ///< [variable][choice]; infinity: not allowed
  std::vector<PairCost> pairs;             ///< of one pair of variables there may be several
};

struct Assignment {
  std::vector<int> choices;  ///< [variable]
  double cost = 0;
  double bound = 0;  ///< no assignment costs less
  std::size_t largest_table = 0;
  bool exact = true;
};

/// Returns the cost of some choices.
double cost_of(const AssignmentProblem& problem, const std::vector<int>& choices);

/// Returns the cheapest assignment, or one with a bound.
Assignment cheapest_assignment(const AssignmentProblem& problem, std::size_t most_entries = std::size_t{1} << 22);

}}  // namespace plumb::planner
