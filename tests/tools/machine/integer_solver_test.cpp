#include "tools/machine/integer_solver.h"

#include <random>

#include <doctest/doctest.h>

#include "planner/shard/integer_program.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/exact_order.h"
#include "schedules/search/order_program.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/random_questions.h"

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
  const auto answer = machine_solver({.patience = Seconds{30}})(integer_program(problem));
  if (!answer) {
    MESSAGE("skipped: no cbc, highs or glpsol is on PATH");
    return;
  }
  const Assignment found = solved(problem, given, *answer);
  CHECK(found.exact);
  CHECK(found.cost == doctest::Approx(exact.cost).epsilon(1e-9));
}

TEST_CASE("with a limit of nodes the machine's solver finds the shortest order, the same each time") {
  if (node_counting_solver().empty()) {
    MESSAGE("skipped: no cbc or highs is on PATH");
    return;
  }
  const IntegerSolver solver = machine_solver({.nodes = 200});
  std::mt19937_64 random(22);
  int proved = 0, found = 0;
  for (int k = 0; k < 12; ++k) {
    const OrderQuestion question = random_question(random, {.placement = k % 4 == 3 ? "v" : "chain",
                                                            .ranks = 2 + k % 2,
                                                            .microbatches = k % 4 == 3 ? 2 : 2 + k % 2,
                                                            .slices = 1 + k % 8 / 7,
                                                            .slower_back = k % 2 == 0});
    const Schedule serial = serial_order(question);
    if (!fits_memory(question, serial)) continue;
    const ExactOrder exact = exact_order(question, order_time(serial, question) + 1);
    if (!exact.is_complete) continue;
    CAPTURE(k);
    const SolvedOrder solved = solved_order(question, exact.time + 1, solver);
    CHECK(solved.bound <= exact.time);
    if (!solved.schedule.ranks.empty()) {
      ++found;
      CHECK(solved.time >= exact.time);
      CHECK(validate(solved.schedule).empty());
      CHECK(order_time(solved.schedule, question) == solved.time);
    }
    if (k % 6 == 0) CHECK(solved_order(question, exact.time + 1, solver).schedule == solved.schedule);
    if (solved_order(question, exact.time, solver).bound == exact.time) ++proved;
  }
  MESSAGE(found, " found and ", proved, " proved optimal of 12");
  CHECK(found >= 6);
  CHECK(proved >= 6);
}

}}  // namespace plumb::test
