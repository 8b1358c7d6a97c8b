// A search times an order as the simulator does, also where links carry one message at a time.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "schedules/bounds/order_question.h"
#include "schedules/passes/lower.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/search_schedule.h"
#include "schedules/synthesis/local_search.h"
#include "simulator/simulate.h"

namespace plumb::test {

TEST_CASE("an order takes as long in a search as in a simulation, on any placement, with links of any bandwidth") {
  std::mt19937 random(41);
  int timed = 0;
  for (int k = 0; k < 24; ++k) {
    const std::vector<StagePlace> stages = k % 3 == 0   ? loop_placement(4, 4)
                                           : k % 3 == 1 ? snake_placement(4, 8)
                                                        : loop_placement(3, 6);
    const auto count = static_cast<int>(stages.size());
    ChunkCosts chunk{.forward = {}, .input_grad = {}, .weight_grad = {}};
    for (std::vector<Seconds>* list : {&chunk.forward, &chunk.input_grad, &chunk.weight_grad})
      for (int s = 0; s < count; ++s) list->emplace_back(1 + static_cast<int>(random() % 9));
    chunk.hop_latency = Seconds{static_cast<double>(random() % 3)};
    CostTable table = chunk_cost_table(count, chunk);
    for (StageCosts& stage : table.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 8;
    table.default_link.bytes_per_second = static_cast<double>(1 << (random() % 4));  // 1 to 8 s a message
    OrderQuestion question{.frame = {.name = "any", .microbatches = 6, .stages = stages},
                           .ranks = stages.size() == 6 ? 3 : 4,
                           .costs = order_costs(table, stages)};
    for (const Schedule& order : catalogue_orders(question)) {
      const Simulation simulated = simulate(lower(order), table, {.record_timeline = false});
      CAPTURE(k);
      CAPTURE(order.name);
      question.objective = Objective::kMakespan;
      CHECK(order_time(order, question) == simulated.makespan.count());
      question.objective = Objective::kSpan;
      CHECK(order_time(order, question) == longest_span(simulated).count());
      ++timed;
    }
  }
  CHECK(timed > 100);
}

TEST_CASE("an order with overlapped pairs takes as long in a search as in a simulation") {
  std::mt19937 random(42);
  int paired = 0;
  for (int k = 0; k < 20; ++k) {
    const std::vector<StagePlace> stages = k % 2 == 0 ? snake_placement(4, 8) : bidirectional_placement(4);
    const auto count = static_cast<int>(stages.size());
    const auto seconds = [&random](unsigned most) { return Seconds{1.0 + static_cast<double>(random() % most)}; };
    const bool equal = k % 4 < 2;
    CostTable table = chunk_cost_table(count, {.hop_latency = Seconds{static_cast<double>(random() % 3)}});
    std::vector<StageCosts> parts;  // copies of a part cost the same
    for (int part = 0; part < count; ++part) {
      if (equal && part > 0) {
        parts.push_back(parts.front());
        continue;
      }
      StageCosts& stage = parts.emplace_back(table.stages.front());
      const auto set = [&stage](Op op, std::vector<Segment> segments) {
        stage.segments[static_cast<std::size_t>(op)] = {std::move(segments)};
      };
      const auto exchange = [&] {
        return Segment{.kind = Segment::Kind::kCollective, .seconds = seconds(9), .group = Group::kExpert};
      };
      const Segment input_grad{.seconds = seconds(9)}, weight_grad{.seconds = seconds(9)}, back = exchange();
      set(Op::kForward, {Segment{.seconds = seconds(9)}, exchange()});
      set(Op::kInputGrad, {input_grad, back});
      set(Op::kWeightGrad, {weight_grad});
      set(Op::kBackward, {input_grad, back, weight_grad});
    }
    for (std::size_t s = 0; s < stages.size(); ++s)
      table.stages[s] = parts[static_cast<std::size_t>(stages[s].model_part)];
    OrderQuestion question{.frame = {.name = "any", .microbatches = 8, .stages = stages},
                           .ranks = 4,
                           .costs = order_costs(table, stages),
                           .objective = Objective::kMakespan};
    REQUIRE(question.costs.has_pairs());
    std::vector<Schedule> orders = catalogue_orders(question);
    orders.push_back(search_schedule(question, {.timed_actions = 5e5}).value().schedule);
    for (const Schedule& order : orders) {
      CAPTURE(k);
      CAPTURE(order.name);
      CHECK(order_time(order, question) == simulate(lower(order), table, {.record_timeline = false}).makespan.count());
      paired += std::ranges::any_of(order.ranks, [](const std::vector<Action>& list) {
        return std::ranges::any_of(list, &Action::overlaps_next);
      });
    }
  }
  CHECK(paired >= 30);
}

}  // namespace plumb::test
