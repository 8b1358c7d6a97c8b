#include "schedules/search/integer_solver.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("terms have a line each, with their sign apart") {
  std::string program;
  add_term(program, 1, "x");
  add_term(program, -0.5, "y");
  CHECK(program == " + 1 x\n - 0.5 y\n");
}

TEST_CASE("what the files of CBC, HiGHS and GLPK say of their solution") {
  for (const char* text :
       {"Optimal - objective value 4.5\n", "Model status\nOptimal\n", "Status:     INTEGER OPTIMAL\n"}) {
    CAPTURE(text);
    CHECK(says_optimal(text));
    CHECK_FALSE(says_infeasible(text));
  }
  for (const char* text : {"Infeasible - objective value 333\n", "Integer infeasible - objective value 140\n",
                           "Model status\nInfeasible\n", "Status:     INTEGER EMPTY\n"}) {
    CAPTURE(text);
    CHECK_FALSE(says_optimal(text));
    CHECK(says_infeasible(text));
  }
  for (const char* text : {"Stopped on nodes - objective value 4.5\n", "Model status\nSolution limit reached\n",
                           "Status:     INTEGER NON-OPTIMAL\n", ""}) {
    CAPTURE(text);
    CHECK_FALSE(says_optimal(text));
    CHECK_FALSE(says_infeasible(text));
  }
}

TEST_CASE("values stand behind the names of their variables") {
  const std::vector<std::pair<std::string, double>> wanted = {{"value", 4.5}, {"x0_1", 1}, {"y2", 0.25}};
  CHECK(values_in("Optimal - objective value 4.5\n 1 x0_1   1   2\n 3 y2   0.25   0\n") == wanted);
  CHECK(values_in("   No. Column name  Activity\n     1 s0   *   3   0\n") ==
        std::vector<std::pair<std::string, double>>{{"Activity", 1}, {"s0", 3}});
}

TEST_CASE("the last bound that a solver printed is read") {
  const char* cbc =
      "Result - Stopped on time limit\n\nObjective value:                4.5\nLower bound:                    4.25\n";
  const char* highs =
      "Solving report\n  Status            Time limit reached\n  Primal bound      4.5\n  Dual bound        4.25\n";
  const char* glpk =
      "+   100: mip =     not found yet >=              -inf        (1; 0)\n"
      "+   200: mip =   4.500000000e+00 >=   4.250000000e+00   5.6% (7; 3)\n";
  for (const char* log : {cbc, highs, glpk}) {
    CAPTURE(log);
    CHECK(bound_in(log) == 4.25);
  }
  CHECK_FALSE(bound_in("mip = not found yet >= -inf (1; 0)"));
  CHECK_FALSE(bound_in("nothing of that"));
}

}  // namespace plumb::test
