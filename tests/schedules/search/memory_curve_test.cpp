#include "schedules/search/memory_curve.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/rules/validate.h"
#include "schedules/search/placements.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {
namespace {

const SearchEffort kLittle{.timed_actions = 2e5};

/// Returns the question of 4 ranks with two parts of the model each, on a placement that joins some.
OrderQuestion placed(const NamedPlacement& placement) {
  const int stages = static_cast<int>(placement.stages.size());
  const int joined = 8 / stages;
  OrderQuestion question{
      .frame = {.name = placement.name, .microbatches = 8, .stages = placement.stages},
      .ranks = 4,
      .costs = equal_costs({.forward = 10 * joined, .input_grad = 10 * joined, .weight_grad = 10 * joined}, stages)};
  question.memory = counted_activations(question, 8);
  for (std::int64_t& bytes : question.memory.activation_bytes) bytes = joined;
  return question;
}

std::vector<OrderQuestion> chain_and_v() {
  std::vector<OrderQuestion> questions;
  for (const char* name : {"chain", "v"}) questions.push_back(placed(placements(name, 4, 2).front()));
  return questions;
}

}  // namespace

TEST_CASE("times fall as memory grows, each order fits its limit, and a memory for no order is left out") {
  const std::vector<OrderQuestion> questions = chain_and_v();
  const std::vector<CurvePoint> curve = memory_curve(questions, kUsualRatios, kLittle);
  REQUIRE(curve.size() >= 5);
  CHECK(curve.front().limit_bytes >= 2);  // a rank of either holds two parts of a micro-batch at least
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const CurvePoint& point = curve[i];
    CHECK(validate(point.found.schedule).empty());
    CHECK(point.found.time == order_time(point.found.schedule, questions[point.question]));
    CHECK(point.found.time >= point.found.bound.time);
    for (const auto& actions : point.found.schedule.ranks)
      CHECK(peak_bytes(questions[point.question].memory, actions) <= point.limit_bytes);
    if (i == 0) continue;
    CHECK(point.limit_bytes > curve[i - 1].limit_bytes);
    CHECK(point.found.time <= curve[i - 1].found.time);
  }
}

TEST_CASE("no schedule of the catalogue is quicker than the best found within its memory") {
  const std::vector<OrderQuestion> questions = chain_and_v();
  const std::vector<CurvePoint> curve = memory_curve(questions, kUsualRatios, kLittle);
  const std::vector<GeneratorLoss> losses = generator_losses(questions, curve, kLittle);
  const auto find = [&](std::string_view name) {
    const auto it = std::ranges::find(losses, name, [](const GeneratorLoss& loss) { return loss.order.name; });
    REQUIRE(it != losses.end());
    return *it;
  };
  for (const GeneratorLoss& loss : losses) CHECK(loss.best_time <= loss.time);
  CHECK(std::ranges::is_sorted(losses, {}, &GeneratorLoss::peak_bytes));
  CHECK(find("1f1b").time == (8 + 3) * 60);  // (m+p-1)(F+B): its span is its makespan, backwards are whole
  CHECK(find("1f1b").peak_bytes == 8);
  CHECK(find("zb-v").time == find("zb-v").best_time);  // no bubble: nothing is quicker
  CHECK(find("1f1b").best_time < find("1f1b").time);
}

}  // namespace plumb::test
