#include "planner/shard/assignment.h"

#include <algorithm>
#include <limits>
#include <random>

#include <doctest/doctest.h>

namespace plumb::test { namespace {

AssignmentProblem random_problem(std::mt19937& random, int variables, int choices, double density) {
  const auto uniform = [&] { return std::uniform_real_distribution<>(0, 1)(random); };
  AssignmentProblem problem;
  for (int i = 0; i < variables; ++i) {
    problem.costs.emplace_back();
    const int count = 1 + static_cast<int>(random() % choices);
    for (int k = 0; k < count; ++k) problem.costs.back().push_back(uniform());
  }
  for (int i = 0; i < variables; ++i)
    for (int k = 0; k < i; ++k) {
      if (uniform() > density) continue;
      const bool turned = random() % 2 == 0;
      PairCost pair{.first = turned ? i : k, .second = turned ? k : i};
      for (std::size_t n = 0; n < problem.costs[i].size() * problem.costs[k].size(); ++n)
        pair.costs.push_back(uniform() < 0.1 ? 10 : uniform());
      problem.pairs.push_back(std::move(pair));
    }
  return problem;
}

double tried_one_by_one(const AssignmentProblem& problem) {
  std::vector<int> choices(problem.costs.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    least = std::min(least, cost_of(problem, choices));
    std::size_t i = 0;
    while (i < choices.size() && ++choices[i] == static_cast<int>(problem.costs[i].size())) choices[i++] = 0;
    if (i == choices.size()) return least;
  }
}

TEST_CASE("the cheapest assignment is that of trying every one, on 200 random graphs of up to 14 variables") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const int variables = 1 + static_cast<int>(random() % 14);
    const AssignmentProblem problem = random_problem(random, variables, variables > 9 ? 2 : 4, 0.3);
    const Assignment found = cheapest_assignment(problem);
    CAPTURE(trial);
    CHECK(found.exact);
    CHECK(found.cost == doctest::Approx(tried_one_by_one(problem)).epsilon(1e-12));
    CHECK(found.cost == cost_of(problem, found.choices));
    CHECK(found.bound == found.cost);
  }
}

TEST_CASE("where tables may not grow, the answer has a bound that holds") {
  std::mt19937 random(5);
  int inexact = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const AssignmentProblem problem = random_problem(random, 9, 4, 0.7);
    const Assignment found = cheapest_assignment(problem, 16);
    const double least = tried_one_by_one(problem);
    CAPTURE(trial);
    CHECK(found.bound <= least + 1e-12);
    CHECK(found.cost >= least - 1e-12);
    CHECK(found.largest_table <= 16);
    inexact += found.exact ? 0 : 1;
  }
  CHECK(inexact > 25);
}

TEST_CASE("a chain of many variables takes small tables") {
  std::mt19937 random(3);
  AssignmentProblem problem;
  for (int i = 0; i < 5000; ++i) problem.costs.push_back({1, 2, 3});
  for (int i = 1; i < 5000; ++i)
    problem.pairs.push_back({.first = i - 1, .second = i, .costs = {9, 0, 9, 0, 9, 9, 9, 9, 9}});
  const Assignment found = cheapest_assignment(problem);
  CHECK(found.largest_table == 3);
  CHECK(found.cost == 2500 * (1 + 2));  // the first two choices in turn
}

}}  // namespace plumb::test
