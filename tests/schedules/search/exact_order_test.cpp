#include "schedules/search/exact_order.h"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/search_schedule.h"
#include "schedules/synthesis/local_search.h"
#include "tests/sanitized.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

/// Returns the shortest time over all orders of a question's one lane that are tried one by one: with micro-batches, and
/// the slices of each, ascending on each stage, or in any way.
class EveryOrder {
 public:
  enum class Microbatches : std::uint8_t { kAscending, kAny };

  explicit EveryOrder(const OrderQuestion& question, Microbatches microbatches = Microbatches::kAscending)
      : question_(question),
        microbatches_(microbatches),
        order_(question.frame),
        lists_(static_cast<std::size_t>(question.ranks)) {
    order_.ranks.assign(lists_.size(), {});
    for (int rank = 0; rank < question.ranks; ++rank) {
      std::vector<Action> list;
      extend(rank, list);
    }
  }

  std::int64_t shortest() {
    choose(0);
    return shortest_;
  }

 private:
  /// Adds all lists of a rank that begin with this one and fit its memory.
  void extend(int rank, std::vector<Action>& list) {
    bool is_whole = true;
    for (int stage = 0; stage < static_cast<int>(question_.frame.stages.size()); ++stage) {
      if (question_.frame.stages[stage].rank != rank) continue;
      for (const Op op : ops()) {
        for (const Action& action : next(list, op, stage)) {
          is_whole = false;
          if (!follows(list, action)) continue;
          list.push_back(action);
          if (fits(rank, list)) extend(rank, list);
          list.pop_back();
        }
      }
    }
    if (is_whole) lists_[static_cast<std::size_t>(rank)].push_back(list);
  }

  /// Returns the actions of a kind that a list may have next: of the first micro-batch that is not through, or of each.
  std::vector<Action> next(const std::vector<Action>& list, Op op, int stage) const {
    std::vector<Action> actions;
    for (int microbatch = 0; microbatch < question_.frame.microbatches; ++microbatch) {
      const auto done = static_cast<int>(std::ranges::count_if(list, [&](const Action& action) {
        return action.op == op && action.stage == stage && action.microbatch == microbatch;
      }));
      if (done == question_.slices) continue;
      const int part = op == Op::kForward ? done : question_.slices - 1 - done;
      actions.push_back({.op = op, .part = static_cast<std::int16_t>(part), .stage = stage, .microbatch = microbatch});
      if (microbatches_ == Microbatches::kAscending) break;
    }
    return actions;
  }

  std::vector<Op> ops() const {
    if (question_.whole_backwards) return {Op::kForward, Op::kBackward};
    return {Op::kForward, Op::kInputGrad, Op::kWeightGrad};
  }

  /// True if a list has what an action of its stage needs: the last slice of a sequence goes back first.
  bool follows(const std::vector<Action>& list, const Action& action) const {
    if (action.op == Op::kForward) return true;
    Action needed = action;
    needed.op = action.op == Op::kWeightGrad ? Op::kInputGrad : Op::kForward;
    if (action.op != Op::kWeightGrad) needed.part = static_cast<std::int16_t>(question_.slices - 1);
    return std::ranges::count(list, needed) > 0;
  }

  bool fits(int rank, const std::vector<Action>& list) const {
    const std::vector<std::int64_t>& most = question_.memory.max_bytes;
    return most.empty() || peak_bytes(question_.memory, list) <= most[static_cast<std::size_t>(rank)];
  }

  /// Tries all lists of a rank and of those behind it.
  void choose(std::size_t rank) {
    if (rank == lists_.size()) {
      pair(0, 0);
      return;
    }
    for (const std::vector<Action>& list : lists_[rank]) {
      order_.ranks[rank] = list;
      choose(rank + 1);
    }
  }

  /// Tries the order with all ways to join neighbours, from a position of a rank on, to pairs that take less time.
  void pair(std::size_t rank, std::size_t from) {
    for (; rank < order_.ranks.size(); ++rank, from = 0) {
      std::vector<Action>& list = order_.ranks[rank];
      for (std::size_t i = from; i + 1 < list.size() && question_.costs.has_pairs(); ++i) {
        const Action& backward = list[i + 1];
        if (list[i].op != Op::kForward || !gives_input_gradient(backward.op) || list[i].stage == backward.stage)
          continue;
        list[i].overlaps_next = true;
        pair(rank, i + 2);
        list[i].overlaps_next = false;
      }
    }
    if (validate(order_).empty()) shortest_ = std::min(shortest_, order_time(order_, question_));
  }

  const OrderQuestion& question_;
  Microbatches microbatches_;
  Schedule order_;
  std::vector<std::vector<std::vector<Action>>> lists_;  ///< [rank] the lists that it may have
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

TEST_CASE("where stages share a rank's memory, a forward may have to wait though it could run at once" *
          doctest::skip(kIsSanitized)) {
  std::mt19937_64 random(13);
  int limited = 0;
  for (int k = 0; k < 40; ++k) {
    OrderQuestion question = random_question(random, {.placement = k % 2 == 0 ? "v" : "loop", .microbatches = 2});
    question.whole_backwards = true;
    question.memory.max_bytes = {20 + 10 * (k % 3 / 2), 20 + 10 * (k % 3)};
    CAPTURE(k);
    const ExactOrder exact = exact_order(question, kAny);
    REQUIRE(exact.is_complete);
    const std::int64_t shortest = EveryOrder(question).shortest();
    CHECK(exact.time == shortest);
    if (shortest < kAny) ++limited;
  }
  CHECK(limited >= 20);
}

TEST_CASE("with sequences in slices the shortest order is that of trying all of them") {
  std::mt19937_64 random(14);
  int limited = 0;
  for (int k = 0; k < 16; ++k) {
    OrderQuestion question = random_question(random, {.ranks = 2, .microbatches = 1 + k % 2, .slices = 3 - k % 2});
    question.whole_backwards = k % 4 > 1 || k % 2 == 1;
    CAPTURE(k);
    const ExactOrder exact = exact_order(question, kAny);
    REQUIRE(exact.is_complete);
    CHECK(exact.time == EveryOrder(question).shortest());
    if (exact.schedule.ranks.empty()) continue;
    if (!question.memory.max_bytes.empty()) ++limited;
    CHECK(validate(exact.schedule).empty());
    CHECK(fits_memory(question, exact.schedule));
    CHECK(order_time(exact.schedule, question) == exact.time);
    CHECK(best_bound(question).time <= exact.time);
  }
  CHECK(limited >= 4);
}

TEST_CASE("no order in which micro-batches change places is shorter, and none whose slices of two mix") {
  std::mt19937_64 random(15);
  for (int k = 0; k < 8; ++k) {
    OrderQuestion question = random_question(random, {.ranks = 2, .microbatches = 2, .slices = 2});
    question.whole_backwards = true;
    question.objective = Objective::kMakespan;
    CAPTURE(k);
    CHECK(exact_order(question, kAny).time == EveryOrder(question, EveryOrder::Microbatches::kAny).shortest());
  }
}

TEST_CASE("no bound is above the shortest of all orders with pairs, and no search is below it" *
          doctest::skip(kIsSanitized)) {
  std::mt19937_64 random(16);
  int shorter = 0;
  for (int k = 0; k < 8; ++k) {
    const bool is_alone = k % 4 != 0;
    OrderQuestion question = random_question(random, {.placement = k % 8 == 0 ? "v" : "loop",
                                                      .ranks = is_alone ? 1 : 2,
                                                      .microbatches = is_alone ? 3 : 2,
                                                      .pairs = true});
    const std::size_t stages = question.frame.stages.size();
    question.costs.pairs.input_grad = {};
    question.whole_backwards = true;
    std::ranges::fill(question.costs.weight_grad, 0);
    for (std::size_t pair = 0; pair < stages * stages; ++pair) {
      question.costs.pairs.backward[pair] =
          std::max(question.costs.forward[pair / stages], question.costs.input_grad[pair % stages]);
      if (pair / stages == pair % stages) {
        question.costs.pairs.backward[pair] =
            question.costs.forward[pair / stages] + question.costs.input_grad[pair % stages];
      }
    }
    question.memory.max_bytes.assign(static_cast<std::size_t>(question.ranks), 30 + 10 * (k % 3));
    OrderQuestion apart = question;
    apart.costs.pairs = {};
    const std::int64_t shortest = EveryOrder(question).shortest();
    CAPTURE(k);
    CHECK(best_bound(question).time <= shortest);
    const FoundSchedule found = search_schedule(question, {.timed_actions = 1e6}).value();
    CHECK(found.bound.time <= shortest);
    CHECK(found.time >= shortest);
    if (shortest < EveryOrder(apart).shortest()) ++shorter;
  }
  CHECK(shorter >= 3);
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
