// A search times an order as the simulator does, also where links carry one message at a time.

#include <doctest/doctest.h>

#include <random>

#include "schedules/bounds/order_question.h"
#include "schedules/passes/lower.h"
#include "schedules/search/catalogue_orders.h"
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

}  // namespace plumb::test
