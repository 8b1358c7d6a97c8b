#include "schedules/search/exact_order.h"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

/// Returns the shortest time over all orders of a rank's list that are tried one by one, with micro-batches
/// ascending.
class EveryOrder {
 public:
  explicit EveryOrder(const OrderQuestion& question) : question_(question), order_(question.frame) {
    order_.ranks.assign(static_cast<std::size_t>(question.ranks), {});
  }

  std::int64_t shortest() {
    extend(0, 0, 0, 0);
    return shortest_;
  }

 private:
  void extend(int rank, int forwards, int input_grads, int weight_grads) {
    const int m = question_.frame.microbatches;
    if (rank == question_.ranks) return measure();
    if (weight_grads == m) return extend(rank + 1, 0, 0, 0);
    const auto with = [&](Op op, int microbatch, int f, int i, int w) {
      order_.ranks[rank].push_back({.op = op, .stage = rank, .microbatch = microbatch});
      extend(rank, f, i, w);
      order_.ranks[rank].pop_back();
    };
    if (forwards < m) with(Op::kForward, forwards, forwards + 1, input_grads, weight_grads);
    if (input_grads < forwards) with(Op::kInputGrad, input_grads, forwards, input_grads + 1, weight_grads);
    if (weight_grads < input_grads) with(Op::kWeightGrad, weight_grads, forwards, input_grads, weight_grads + 1);
  }

  void measure() {
    if (!fits_memory(question_, order_) || !validate(order_).empty()) return;
    shortest_ = std::min(shortest_, order_time(order_, question_));
  }

  const OrderQuestion& question_;
  Schedule order_;
  std::int64_t shortest_ = kAny;
};

}  // namespace

TEST_CASE("the shortest order is that of trying all of them") {
  std::mt19937_64 random(11);
  for (int k = 0; k < 12; ++k) {
    OrderQuestion question = random_question(random, {.ranks = 2 + k % 2, .microbatches = 3 - k % 2});
    question.whole_backwards = false;
    CAPTURE(k);
    const ExactOrder exact = exact_order(question, kAny);
    REQUIRE(exact.is_complete);
    CHECK(exact.time == EveryOrder(question).shortest());
    CHECK(validate(exact.schedule).empty());
    CHECK(fits_memory(question, exact.schedule));
    CHECK(order_time(exact.schedule, question) == exact.time);
  }
}

TEST_CASE("with whole backwards and 1F1B's memory, 1F1B's time is proved the shortest") {
  OrderQuestion question = chain_question(3, 5, {.forward = 1, .input_grad = 1, .weight_grad = 1}, 3);
  question.whole_backwards = true;
  const ExactOrder exact = exact_order(question, kAny);
  CHECK(exact.is_complete);
  CHECK(exact.time == (5 + 2) * 3);
  CHECK(validate(exact.schedule).empty());
  const ExactOrder none = exact_order(question, exact.time);
  CHECK(none.is_complete);
  CHECK(none.schedule.ranks.empty());
}

TEST_CASE("on a V and a loop the shortest order is no longer than any that is known, nor shorter than the bound") {
  std::mt19937_64 random(12);
  int settled = 0;
  for (int k = 0; k < 24; ++k) {
    const OrderQuestion question =
        random_question(random, {.placement = k % 2 == 0 ? "v" : "loop", .ranks = 2, .microbatches = 1 + k % 3});
    const ExactOrder exact = exact_order(question, kAny);
    CAPTURE(k);
    if (!exact.is_complete) continue;
    ++settled;
    if (exact.schedule.ranks.empty()) continue;  // its memory holds no micro-batch
    CHECK(validate(exact.schedule).empty());
    CHECK(fits_memory(question, exact.schedule));
    CHECK(order_time(exact.schedule, question) == exact.time);
    CHECK(best_bound(question).time <= exact.time);
    for (const Schedule& order : catalogue_orders(question)) CHECK(exact.time <= order_time(order, question));
  }
  CHECK(settled >= 20);
}

TEST_CASE("on two ranks with two stages each ZB-V has no bubble, and no order is shorter") {
  OrderQuestion question{.frame = {.name = "v", .microbatches = 3, .stages = snake_placement(2, 4)},
                         .ranks = 2,
                         .costs = equal_costs({.weight_grad = 1}, 4)};
  question.memory = counted_activations(question, 4);
  const ExactOrder exact = exact_order(question, kAny);
  CHECK(exact.is_complete);
  CHECK(exact.time == 3 * 2 * 3);  // m micro-batches of two chunks, each F, I and W
}

TEST_CASE("a search that is cut short says so, and one of several lanes is refused") {
  const OrderQuestion question = chain_question(3, 8, {.forward = 3, .input_grad = 5, .weight_grad = 2, .hop = 1}, 3);
  CHECK_FALSE(exact_order(question, kAny, {.most_nodes = 10}).is_complete);
  CHECK_FALSE(exact_order(question, kAny, {.is_stopped = [] { return true; }}).is_complete);
  OrderQuestion both = chain_question(2, 2, {});
  both.frame.stages = bidirectional_placement(2);
  CHECK_THROWS_AS(exact_order(both, kAny), ScheduleError);
}

}  // namespace plumb::test
