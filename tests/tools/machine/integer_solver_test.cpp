#include "tools/machine/integer_solver.h"

#include <random>

#include <doctest/doctest.h>

namespace plumb::test { namespace {

/// Variables that all meet each other, which no small tables eliminate.
AssignmentProblem dense_problem(int variables, int choices) {
  std::mt19937 random(23);
  const auto uniform = [&] { return std::uniform_real_distribution<>(0, 1)(random); };
  AssignmentProblem problem;
  for (int i = 0; i < variables; ++i)
    for (int k = 0; k < choices; ++k) {
      if (k == 0) problem.costs.emplace_back();
      problem.costs.back().push_back(uniform());
    }
  for (int i = 0; i < variables; ++i)
    for (int j = i + 1; j < variables; ++j) {
      PairCost pair{.first = i, .second = j};
      for (int n = 0; n < choices * choices; ++n) pair.costs.push_back(uniform());
      problem.pairs.push_back(std::move(pair));
    }
  return problem;
}

TEST_CASE("the machine's solver finds what an exact elimination finds, where there is a solver") {
  const AssignmentProblem problem = dense_problem(6, 3);
  const Assignment exact = cheapest_assignment(problem);
  const Assignment given = cheapest_assignment(problem, 9);
  REQUIRE(exact.exact);
  REQUIRE_FALSE(given.exact);
  CHECK(given.bound <= exact.cost);
  const auto answer = machine_solver(Seconds{30})(integer_program(problem));
  if (!answer) {
    MESSAGE("skipped: no cbc, highs or glpsol is on PATH");
    return;
  }
  const Assignment found = solved(problem, given, *answer);
  CHECK(found.exact);
  CHECK(found.cost == doctest::Approx(exact.cost).epsilon(1e-9));
}

}}  // namespace plumb::test
