#include "schedules/search/order_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/certificate.h"
#include "schedules/search/exact_order.h"
#include "schedules/synthesis/local_search.h"
#include "schedules/synthesis/order_graph.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {
namespace {

using Values = std::map<std::string, double>;

/// Returns the start of each action of an order, by its number in the graph.
std::vector<std::int64_t> starts_of(const OrderGraph& graph) {
  std::vector<std::int64_t> starts(graph.actions.size(), 0);
  for (bool changes = true; changes;) {
    changes = false;
    for (const std::vector<std::int32_t>& order : graph.listed) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto id = static_cast<std::size_t>(order[i]);
        std::int64_t start = i == 0 ? 0 : starts[order[i - 1]] + graph.durations[order[i - 1]];
        for (const OrderGraph::Input& input : graph.inputs[id]) {
          if (input.id == OrderGraph::kNone) continue;
          start = std::max(start, starts[input.id] + graph.durations[input.id] + input.delay);
        }
        if (start > starts[id]) starts[id] = start, changes = true;
      }
    }
  }
  return starts;
}

/// Returns the name that the program of a chain has for the start of an action: they are numbered by stage, kind and
/// micro-batch.
std::string start_name(const OrderQuestion& question, const Action& action) {
  const int kinds = question.whole_backwards ? 2 : 3;
  const int kind = action.op == Op::kForward ? 0 : action.op == Op::kWeightGrad ? 2 : 1;
  const int k = question.slices;
  const int slice = kind == 0 ? action.part : k - 1 - action.part;
  return "s" + std::to_string((action.stage * kinds + kind) * question.frame.microbatches * k + action.microbatch * k +
                              slice);
}

std::int64_t common_divisor(const OrderQuestion& question) {
  const OrderCosts& costs = question.costs;
  std::int64_t divisor = 0;
  for (std::size_t s = 0; s < costs.forward.size(); ++s) {
    const std::int64_t whole = question.whole_backwards ? costs.weight_grad[s] : 0;
    for (const std::int64_t time : {costs.forward[s], costs.input_grad[s] + whole, costs.weight_grad[s] - whole}) {
      divisor = std::gcd(divisor, time);
    }
    const bool crosses =
        s + 1 < costs.forward.size() && question.frame.stages[s].rank != question.frame.stages[s + 1].rank;
    if (crosses) divisor = std::gcd(divisor, std::gcd(costs.hop.activation[s], costs.hop.gradient[s]));
  }
  return divisor;
}

/// Returns the values that an order gives to the variables of a program but for y: starts in whole units, and the time.
Values values_of(const OrderQuestion& question, const Schedule& order, std::int64_t unit) {
  const OrderGraph graph(order, question);
  const std::vector<std::int64_t> starts = starts_of(graph);
  Values values{{"time", static_cast<double>(order_time(order, question) / unit)}};
  for (std::size_t id = 0; id < starts.size(); ++id) {
    values[start_name(question, graph.actions[id])] = static_cast<double>(starts[id] / unit);
  }
  return values;
}

/// One row of a program: factors by variable, "<=" or ">=", and a number.
struct Row {
  std::vector<std::pair<double, std::string>> terms;
  std::string relation;
  double number = 0;
};

std::vector<Row> rows_of(const std::string& program) {
  const std::size_t begin = program.find("Subject To\n") + 11;
  std::istringstream words(program.substr(begin, program.find("Bounds\n") - begin));
  std::vector<Row> rows(1);
  for (std::string word; words >> word;) {
    if (word == "<=" || word == ">=") {
      rows.back().relation = word;
      words >> rows.back().number;
      rows.emplace_back();
      continue;
    }
    double factor = 0;
    std::string name;
    words >> factor >> name;
    rows.back().terms.emplace_back(word == "-" ? -factor : factor, name);
  }
  rows.pop_back();
  return rows;
}

/// Adds the y that say of two actions of a rank which one starts first: y is 1 where the row of that y with its sign
/// negative has the first one's start with its sign negative. Zero-length actions need none.
void add_pairs(Values& values, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.terms.size() != 3 || row.terms[2].second[0] != 'y' || row.terms[0].second[0] != 's') continue;
    if (row.terms[2].first > 0) continue;
    const double b = values.at(row.terms[0].second), a = values.at(row.terms[1].second);
    values[row.terms[2].second] = a < b ? 1 : 0;
  }
}

/// Returns the rows, as text, that values break.
std::string broken(const Values& values, const std::string& program) {
  std::string found;
  for (const Row& row : rows_of(program)) {
    double sum = 0;
    for (const auto& [factor, name] : row.terms) sum += factor * values.at(name);
    const bool holds = row.relation == "<=" ? sum <= row.number : sum >= row.number;
    if (holds) continue;
    for (const auto& [factor, name] : row.terms) found += std::to_string(factor) + " " + name + " ";
    found += row.relation + " " + std::to_string(row.number) + "\n";
  }
  return found;
}

std::string solution_text(const std::string& status, const Values& values) {
  std::string text = status + " - objective value 0\n";
  for (const auto& [name, value] : values) text += " 0 " + name + " " + std::to_string(value) + " 0\n";
  return text;
}

IntegerSolver answering(const std::string& text) {
  return [text](const std::string&) { return SolverAnswer{.solver = "cbc", .text = text, .log = {}}; };
}

}  // namespace

TEST_CASE("the order of each random question that is searched exactly keeps to its program, in any unit") {
  std::mt19937_64 random(21);
  int kept = 0, rounded = 0;
  for (int k = 0; k < 200; ++k) {
    OrderQuestion question = random_question(random, {.placement = k % 4 == 3 ? "v" : "chain",
                                                      .ranks = 2 + k % 2,
                                                      .microbatches = 1 + k % 3,
                                                      .slices = 1 + k % 5 / 4,
                                                      .slower_back = k % 2 == 0});
    for (std::int64_t& time : question.costs.weight_grad) time += 1;
    if (question.whole_backwards) std::ranges::fill(question.costs.weight_grad, 0);
    if (k % 3 == 0) {  // picoseconds that have no common divisor
      for (std::vector<std::int64_t>* times : {&question.costs.forward, &question.costs.input_grad}) {
        for (std::int64_t& time : *times) time = 1'000'000 * time + static_cast<std::int64_t>(random() % 1000);
      }
    }
    const ExactOrder exact = exact_order(question, std::numeric_limits<std::int64_t>::max(), {.most_nodes = 20'000});
    if (!exact.is_complete || exact.schedule.ranks.empty()) continue;
    CAPTURE(k);
    const std::string program = order_program(question, exact.time + 1);
    REQUIRE_FALSE(program.empty());
    const std::int64_t least = (exact.time + 1 + 99'999) / 100'000;  // more than 10^5 units are too many
    const std::int64_t unit = std::max(common_divisor(question), least);
    if (unit > common_divisor(question)) ++rounded;
    Values values = values_of(question, exact.schedule, unit);
    add_pairs(values, rows_of(program));
    CHECK(broken(values, program) == "");
    ++kept;
  }
  CHECK(kept >= 150);
  CHECK(rounded >= 40);
}

TEST_CASE("an order that holds more than the memory, or starts too early, breaks its program") {
  OrderQuestion question = chain_question(2, 3, {.forward = 3, .input_grad = 4, .weight_grad = 2, .hop = 1}, 2);
  const Schedule order = exact_order(question, 1'000).schedule;
  const std::string program = order_program(question, 1'000);
  Values values = values_of(question, order, 1);
  add_pairs(values, rows_of(program));
  CHECK(broken(values, program).empty());
  Values early = values;
  early["s1"] -= 1;  // the second forward of stage 0 starts before the first one ends
  CHECK_FALSE(broken(early, program).empty());
  question.memory = counted_activations(question, 1);
  CHECK_FALSE(broken(values, order_program(question, 1'000)).empty());
}

TEST_CASE("what a solver finds is timed before it is believed") {
  const OrderQuestion question = chain_question(2, 3, {.forward = 3, .input_grad = 4, .weight_grad = 2, .hop = 1}, 2);
  const ExactOrder exact = exact_order(question, 1'000);
  const Values values = values_of(question, exact.schedule, 1);
  const SolvedOrder right = solved_order(question, exact.time + 1, answering(solution_text("Optimal", values)));
  CHECK(right.time == exact.time);
  CHECK(right.bound == exact.time);
  CHECK(right.solver == "cbc");
  CHECK(order_time(right.schedule, question) == exact.time);

  const SolvedOrder stopped =
      solved_order(question, exact.time + 1, answering(solution_text("Stopped on nodes", values)));
  CHECK(stopped.time == exact.time);
  CHECK(stopped.bound == 0);

  CHECK(solved_order(question, exact.time, answering(solution_text("Optimal", values))).schedule.ranks.empty());
  const SolvedOrder none = solved_order(question, exact.time, answering("Integer infeasible - objective value 9\n"));
  CHECK(none.schedule.ranks.empty());
  CHECK(none.bound == exact.time);
  const SolvedOrder silent = solved_order(question, exact.time, [](const std::string&) { return std::nullopt; });
  CHECK(silent.schedule.ranks.empty());
  CHECK(silent.bound == 0);
}

TEST_CASE("where the work of a rank alone leaves no time, no solver is needed") {
  const OrderQuestion question = chain_question(2, 3, {.forward = 3, .input_grad = 4, .weight_grad = 2}, 3);
  CHECK(order_program(question, 12).empty());
  const SolvedOrder none = solved_order(question, 12, {});
  CHECK(none.bound == 12);
  CHECK(none.solver.empty());
}

TEST_CASE("a bound of a solver is its word, and a check asks again") {
  const OrderQuestion question = chain_question(2, 3, {.forward = 3, .input_grad = 4, .weight_grad = 2, .hop = 1}, 2);
  const ExactOrder exact = exact_order(question, 1'000);
  const FoundSchedule found{.schedule = exact.schedule, .time = exact.time, .bound = program_bound(exact.time, "cbc")};
  CHECK(is_program_bound(found.bound));
  const Certificate certificate = parse_certificate(certificate_text(certificate_of(question, found)), "c.json");
  CHECK(certificate_faults(certificate, found.schedule).size() == 1);
  CHECK(certificate_faults(certificate, found.schedule, answering("Infeasible - objective value 9\n")).empty());
  CHECK(certificate_faults(certificate, found.schedule, answering("Stopped on nodes - objective value 9\n")).size() ==
        1);
  Certificate wrong = certificate;
  ++wrong.bound.time;
  CHECK(certificate_faults(wrong, found.schedule, answering("Infeasible - objective value 9\n")).size() == 1);
}

TEST_CASE("questions of several lanes, and large ones, have no program") {
  OrderQuestion both = chain_question(2, 2, {});
  both.frame.stages = bidirectional_placement(2);
  CHECK_FALSE(is_programmable(both));
  CHECK_THROWS_AS(order_program(both, 100), ScheduleError);
  CHECK(is_programmable(chain_question(4, 32, {})));
  CHECK_FALSE(is_programmable(chain_question(4, 33, {})));
}

TEST_CASE("a span has a program only where the moments are known at which ranks begin") {
  OrderQuestion question = chain_question(3, 2, {});
  CHECK(is_programmable(question));
  question.frame.stages = {{.rank = 0, .model_part = 0},
                           {.rank = 1, .model_part = 1},
                           {.rank = 0, .model_part = 2},
                           {.rank = 2, .model_part = 3}};
  question.costs = equal_costs({}, 4);
  question.memory = counted_activations(question, 0);
  CHECK_FALSE(is_programmable(question));
  question.objective = Objective::kMakespan;
  CHECK(is_programmable(question));
}

}  // namespace plumb::test
