#include "schedules/synthesis/order_costs.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("equal costs are those of every stage") {
  const OrderCosts costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 5, .hop = 7}, 2);
  CHECK(costs.forward == std::vector<std::int64_t>{2, 2});
  CHECK(costs.input_grad == std::vector<std::int64_t>{3, 3});
  CHECK(costs.weight_grad == std::vector<std::int64_t>{5, 5});
  CHECK(costs.hop == 7);
}

TEST_CASE("a cost table's whole backwards count as input gradients alone") {
  const CostTable table = chunk_cost_table(2, {.forward = {Seconds{1}, Seconds{2}}, .backward = {Seconds{3}}});
  const OrderCosts whole = order_costs(table, true);
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  CHECK(whole.forward == std::vector<std::int64_t>{kSecond, 2 * kSecond});
  CHECK(whole.input_grad == std::vector<std::int64_t>{3 * kSecond, 3 * kSecond});
  CHECK(whole.weight_grad == std::vector<std::int64_t>{0, 0});
  CHECK(order_costs(table).weight_grad == std::vector<std::int64_t>{kSecond, kSecond});
}

}  // namespace plumb::test
