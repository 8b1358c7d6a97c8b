#include "schedules/synthesis/listed_chain.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/zero_bubble_rows.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

ListedChain listed(const OrderQuestion& question) {
  return list_chain(question, best_bound(question).time);
}

void check_within_memory(const OrderQuestion& question, const ListedChain& made) {
  CHECK(validate(made.schedule).empty());
  CHECK(fits_memory(question, made.schedule));
  CHECK(order_time(made.schedule, question) == made.time);
  CHECK(made.time >= best_bound(question).time);
}

/// Returns the question that the zero-bubble authors gave their scheduler, with half of an activation
/// released at I or none.
OrderQuestion question_of_row(const ZeroBubbleRow& row, bool half_released) {
  OrderQuestion question = chain_question(row.ranks, row.microbatches,
                                          {.forward = static_cast<std::int64_t>(row.f),
                                           .input_grad = static_cast<std::int64_t>(row.b),
                                           .weight_grad = static_cast<std::int64_t>(row.w),
                                           .hop = static_cast<std::int64_t>(row.c)});
  const double memory_ratio = std::stod(row.memory_limit);  // "1.5p"
  const auto of_each = [&](std::int64_t bytes) {
    return std::vector<std::int64_t>(question.costs.forward.size(), bytes);
  };
  question.memory = {.activation_bytes = of_each(2),
                     .released_at_input_grad_bytes = of_each(half_released ? 1 : 0),
                     .max_bytes = of_each(2 * static_cast<std::int64_t>(memory_ratio * row.ranks))};
  return question;
}

/// Returns the rows of the authors' automatic scheduler.
std::vector<ZeroBubbleRow> zb_auto_rows() {
  std::vector<ZeroBubbleRow> rows = zero_bubble_rows();
  std::erase_if(rows, [](const ZeroBubbleRow& row) { return row.scheduler != "zb_auto"; });
  return rows;
}

}  // namespace

TEST_CASE("with F = I = W and twice 1F1B's memory nothing is lost, and that is proved") {
  const OrderQuestion question = chain_question(4, 8, {.weight_grad = 1}, 8);
  CHECK(listed(question).time == 24);  // m(F+I+W)
  CHECK(best_bound(question).time == 24);
}

TEST_CASE("the shortest span with F = I = W takes ZB-H2's memory, however much there may be") {
  // Qi et al. 2024, section 2.3: 2p - 1 activations on the first rank, and no bubble.
  for (const int p : {2, 4, 8}) {
    const OrderQuestion question = chain_question(p, 4 * p, {.weight_grad = 1}, 100);
    const ListedChain made = listed(question);
    CHECK(made.time == best_bound(question).time);
    for (const auto& actions : made.schedule.ranks) CHECK(peak_bytes(question.memory, actions) <= 2 * p - 1);
  }
}

TEST_CASE("rules sought with fewer micro-batches hold for all, and the effort ends") {
  // 64 ranks of 1024 micro-batches: a thousand candidates would take minutes.
  const OrderQuestion question = chain_question(64, 1024, {.forward = 10, .input_grad = 11, .weight_grad = 1}, 128);
  const ListedChain made = listed(question);
  check_within_memory(question, made);
  CHECK(static_cast<double>(made.time) <= 1.005 * static_cast<double>(best_bound(question).time));
}

TEST_CASE("a search that is stopped at once has no order") {
  const OrderQuestion question = chain_question(4, 8, {.weight_grad = 1}, 8);
  CHECK(list_chain(question, 0, {.is_stopped = [] { return true; }}).schedule.ranks.empty());
}

TEST_CASE("one rank just works") {
  const OrderQuestion question = chain_question(1, 3, {.weight_grad = 1}, 1);
  CHECK(listed(question).time == 9);
  CHECK(best_bound(question).time == 9);
}

TEST_CASE("unequal stages, hops and memory: valid, within each rank's memory, no shorter than the bound") {
  OrderQuestion question = chain_question(3, 9, {});
  question.costs = {
      .forward = {10, 14, 8}, .input_grad = {12, 13, 9}, .weight_grad = {7, 9, 11}, .hop = both_ways({1, 4, 0})};
  question.memory = {
      .activation_bytes = {10, 12, 8}, .released_at_input_grad_bytes = {3, 3, 3}, .max_bytes = {35, 30, 10}};
  for (const Objective objective : {Objective::kSpan, Objective::kMakespan}) {
    question.objective = objective;
    check_within_memory(question, listed(question));
  }
}

TEST_CASE("whole backwards are listed as well: with 1F1B's memory and B = 2F, in 1F1B's time") {
  OrderQuestion question = chain_question(4, 8, {.forward = 1, .input_grad = 1, .weight_grad = 1}, 4);
  question.whole_backwards = true;
  const ListedChain made = listed(question);
  check_within_memory(question, made);
  CHECK(made.time == 33);  // (m + p - 1)(F + B)
}

TEST_CASE("memory for less than one activation, and lists of unequal length, are refused") {
  OrderQuestion empty = chain_question(2, 2, {}, 1);
  empty.memory.max_bytes[0] = 0;
  CHECK_THROWS_WITH(list_chain(empty, 0), "rank 0 may hold 0 bytes, less than one activation of 1: give it more");
  OrderQuestion uneven = chain_question(2, 2, {}, 2);
  uneven.costs.forward.pop_back();
  CHECK_THROWS_AS(list_chain(uneven, 0), ScheduleError);
  CHECK_THROWS_AS(make_schedule("zb-auto", {.ranks = 2, .microbatches = 2, .memory_ratio = 0.5}), ScheduleError);
}

TEST_SUITE_BEGIN("oracle");

TEST_CASE("with half of an activation released at I, every span is that of the zero-bubble authors or shorter") {
  // Their limits at 1.5p and 2p can only be met so: see the next case.
  for (const ZeroBubbleRow& row : zb_auto_rows()) {
    const OrderQuestion question = question_of_row(row, true);
    const ListedChain made = listed(question);
    CAPTURE(row.ranks);
    CAPTURE(row.b);
    CAPTURE(row.w);
    CAPTURE(row.c);
    CAPTURE(row.memory_limit);
    CHECK(made.time <= static_cast<std::int64_t>(row.span));
    check_within_memory(question, made);
  }
}

TEST_CASE("with all of an activation released at W, every span is the authors', shorter, or proved the shortest") {
  for (const ZeroBubbleRow& row : zb_auto_rows()) {
    const OrderQuestion question = question_of_row(row, false);
    const ListedChain made = listed(question);
    CAPTURE(row.ranks);
    CAPTURE(row.b);
    CAPTURE(row.w);
    CAPTURE(row.c);
    CAPTURE(row.memory_limit);
    CHECK(made.time <= std::max(static_cast<std::int64_t>(row.span), best_bound(question).time));
    check_within_memory(question, made);
  }
}

TEST_SUITE_END();

}  // namespace plumb::test
