#include "planner/shard/integer_program.h"

#include <limits>

#include <doctest/doctest.h>

namespace plumb::test { namespace {

/// Two variables of two choices; together the second choice of both is the cheapest.
AssignmentProblem two_variables() {
  return {.costs = {{1, 2}, {1, 2}}, .pairs = {{.first = 0, .second = 1, .costs = {9, 9, 9, 0.5}}}};
}

TEST_CASE("the program has a variable for each choice and each pair of choices, tied by sums") {
  const std::string program = integer_program(two_variables());
  for (const char* part :
       {"Minimize\n cost:\n + 1 x0_0\n + 2 x0_1\n", " + 0.5 y0_1_1\n", " one0:\n + 1 x0_0\n + 1 x0_1\n = 1\n",
        " a0_1:\n + 1 y0_1_0\n + 1 y0_1_1\n - 1 x0_1\n = 0\n", " b0_0:\n + 1 y0_0_0\n + 1 y0_1_0\n - 1 x1_0\n = 0\n",
        "Binaries\n x0_0\n"}) {
    CAPTURE(program);
    CHECK(program.find(part) != std::string::npos);
  }
  AssignmentProblem closed = two_variables();
  closed.costs[0][0] = std::numeric_limits<double>::infinity();
  CHECK(integer_program(closed).find("Bounds\n x0_0 = 0\n") != std::string::npos);
}

TEST_CASE("the choices of GLPK and CBC are read") {
  const AssignmentProblem problem = two_variables();
  const char* glpk =
      "Status:     INTEGER OPTIMAL\n   No. Column name       Activity\n     1 x0_0         *              0            "
      " 0\n"
      "     2 x0_1         *              1             0\n     3 x1_0         *              0             0\n"
      "     4 x1_1         *              1             0\n";
  const char* cbc =
      "Optimal - objective value 4.5\n      1 x0_1                  1                       2\n"
      "      3 x1_1                  1                       2\n";
  const char* highs =
      "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 4.5\n# Columns 8\nx0_0 0\n"
      "x0_1 1\nx1_0 0\nx1_1 1\ny0_0_0 0\n";
  for (const char* text : {glpk, cbc, highs}) {
    CAPTURE(text);
    CHECK(choices_in(problem, text) == std::vector<int>{1, 1});
    const Assignment given{.choices = {0, 0}, .cost = 11, .bound = 3, .exact = false};
    const Assignment better = solved(problem, given, {.solver = "solver", .text = text});
    CHECK(better.exact);
    CHECK(better.cost == 4.5);
    CHECK(better.bound == 4.5);
  }
  CHECK(!choices_in(problem, "no solution").has_value());
  const Assignment given{.choices = {1, 1}, .cost = 4.5, .bound = 3, .exact = false};
  for (const char* text : {"Stopped on time - objective value 4.5\n 0 x0_0 1 2\n 2 x1_0 1 2\n",
                           "Model status\nTime limit reached\nx0_0 1\nx1_0 1\n",
                           "Status: INTEGER NON-OPTIMAL\n1 x0_0 * 1 0\n3 x1_0 * 1 0\n"}) {
    CAPTURE(text);
    const Assignment stopped = solved(problem, given, {.solver = "solver", .text = text});
    CHECK(!stopped.exact);
    CHECK(stopped.cost == 4.5);
    CHECK(stopped.bound == 3);
  }
}

TEST_CASE("a solver that is stopped says how much cheaper another choice may be") {
  const Assignment given{.choices = {1, 1}, .cost = 4.5, .bound = 3, .exact = false};
  const Assignment stopped =
      solved(two_variables(), given, {.solver = "solver", .text = "", .log = "Lower bound: 4.25\n"});
  CHECK(stopped.bound == 4.25);
  CHECK_FALSE(stopped.exact);
  CHECK(solved(two_variables(), given, {.solver = "solver", .text = "", .log = "Lower bound: 2\n"}).bound == 3);
  CHECK(solved(two_variables(), given, {.solver = "solver", .text = "", .log = "Lower bound: 9\n"}).bound == 4.5);
}

}}  // namespace plumb::test
