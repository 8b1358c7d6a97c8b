#include "schedules/synthesis/zero_bubble.h"

#include <algorithm>
#include <sstream>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/zero_bubble_rows.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

struct EqualStages {
  int ranks = 1;
  int microbatches = 1;
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 1;
  std::int64_t hop = 0;
};

ChainCosts chain_costs(const EqualStages& stages, std::int64_t activations) {
  const auto p = static_cast<std::size_t>(stages.ranks);
  return {.microbatches = stages.microbatches,
          .forward = std::vector<SimTime>(p, SimTime{stages.forward}),
          .input_grad = std::vector<SimTime>(p, SimTime{stages.input_grad}),
          .weight_grad = std::vector<SimTime>(p, SimTime{stages.weight_grad}),
          .hop = SimTime{stages.hop},
          .max_bytes = std::vector<std::int64_t>(p, activations)};
}

/// Returns the most that a rank holds at once, in the bytes of `costs`.
std::int64_t peak_bytes(const ChainCosts& costs, const std::vector<Action>& actions) {
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const Action& action : actions) {
    if (action.op == Op::kForward) held += costs.activation_bytes;
    if (action.op == Op::kInputGrad) held -= costs.released_at_input_grad_bytes;
    if (action.op == Op::kWeightGrad) held -= costs.activation_bytes - costs.released_at_input_grad_bytes;
    peak = std::max(peak, held);
  }
  return peak;
}

void check_within_memory(const ChainCosts& costs, const Synthesis& made) {
  CHECK(validate(made.schedule).empty());
  CHECK(made.span >= made.bound);
  for (std::size_t r = 0; r < made.schedule.ranks.size(); ++r) {
    CHECK(peak_bytes(costs, made.schedule.ranks[r]) <= costs.max_bytes[r]);
  }
}

/// Returns the stages of the costs that the zero-bubble authors gave their scheduler.
EqualStages stages_of(const ZeroBubbleRow& row) {
  return {.ranks = row.ranks,
          .microbatches = row.microbatches,
          .forward = static_cast<std::int64_t>(row.f),
          .input_grad = static_cast<std::int64_t>(row.b),
          .weight_grad = static_cast<std::int64_t>(row.w),
          .hop = static_cast<std::int64_t>(row.c)};
}

/// Returns the rows of the authors' automatic scheduler.
std::vector<ZeroBubbleRow> zb_auto_rows() {
  std::vector<ZeroBubbleRow> rows = zero_bubble_rows();
  std::erase_if(rows, [](const ZeroBubbleRow& row) { return row.scheduler != "zb_auto"; });
  return rows;
}

}  // namespace

TEST_CASE("with F = I = W and twice 1F1B's memory nothing is lost, and that is proved") {
  const Synthesis made = synthesize_zero_bubble(chain_costs({.ranks = 4, .microbatches = 8}, 8));
  CHECK(made.span == SimTime{24});  // m(F+I+W)
  CHECK(made.bound == SimTime{24});
}

TEST_CASE("the shortest span with F = I = W takes ZB-H2's memory, however much there may be") {
  // Qi et al. 2024, section 2.3: 2p - 1 activations on the first rank, and no bubble.
  for (const int p : {2, 4, 8}) {
    const ChainCosts costs = chain_costs({.ranks = p, .microbatches = 4 * p}, 100);
    const Synthesis made = synthesize_zero_bubble(costs);
    CHECK(made.span == made.bound);
    for (const std::vector<Action>& actions : made.schedule.ranks) CHECK(peak_bytes(costs, actions) <= 2 * p - 1);
  }
}

TEST_CASE("rules sought with fewer micro-batches hold for all, and the effort ends") {
  // 64 ranks of 1024 micro-batches: a thousand candidates would take minutes.
  const ChainCosts costs = chain_costs({.ranks = 64, .microbatches = 1024, .forward = 10, .input_grad = 11}, 128);
  const Synthesis made = synthesize_zero_bubble(costs);
  check_within_memory(costs, made);
  CHECK(made.span.count() <= 1.005 * static_cast<double>(made.bound.count()));
}

TEST_CASE("one rank just works") {
  const Synthesis made = synthesize_zero_bubble(chain_costs({.ranks = 1, .microbatches = 3}, 1));
  CHECK(made.span == SimTime{9});
  CHECK(made.span == made.bound);
}

TEST_CASE("unequal stages and memory: valid, within each rank's memory, no longer than the bound allows") {
  const ChainCosts costs{.microbatches = 9,
                         .forward = {SimTime{10}, SimTime{14}, SimTime{8}},
                         .input_grad = {SimTime{12}, SimTime{13}, SimTime{9}},
                         .weight_grad = {SimTime{7}, SimTime{9}, SimTime{11}},
                         .hop = SimTime{1},
                         .activation_bytes = 10,
                         .released_at_input_grad_bytes = 3,
                         .max_bytes = {35, 30, 10}};
  check_within_memory(costs, synthesize_zero_bubble(costs));
}

TEST_CASE("memory for less than one activation, and lists of unequal length, are refused") {
  CHECK_THROWS_WITH(synthesize_zero_bubble(chain_costs({.ranks = 2, .microbatches = 2}, 0)),
                    "rank 0 may hold 0 bytes, less than one activation of 1: give it more");
  ChainCosts uneven = chain_costs({.ranks = 2, .microbatches = 2}, 2);
  uneven.forward.pop_back();
  CHECK_THROWS_AS(synthesize_zero_bubble(uneven), ScheduleError);
  CHECK_THROWS_AS(make_schedule("zb-auto", {.ranks = 2, .microbatches = 2, .memory_ratio = 0.5}), ScheduleError);
}

TEST_SUITE_BEGIN("oracle");

TEST_CASE("with half of an activation released at I, every span is that of the zero-bubble authors or shorter") {
  // Their limits at 1.5p and 2p can only be met so: see the next case.
  for (const ZeroBubbleRow& row : zb_auto_rows()) {
    const EqualStages stages = stages_of(row);
    const double memory_ratio = std::stod(row.memory_limit);  // "1.5p"
    ChainCosts costs = chain_costs(stages, static_cast<std::int64_t>(2 * memory_ratio * stages.ranks));
    costs.activation_bytes = 2;
    costs.released_at_input_grad_bytes = 1;
    const Synthesis made = synthesize_zero_bubble(costs);
    CAPTURE(stages.ranks);
    CAPTURE(stages.input_grad);
    CAPTURE(stages.weight_grad);
    CAPTURE(stages.hop);
    CAPTURE(memory_ratio);
    CHECK(made.span <= SimTime{static_cast<std::int64_t>(row.span)});
    check_within_memory(costs, made);
  }
}

TEST_CASE("with all of an activation released at W, every span is the authors', shorter, or proved the shortest") {
  for (const ZeroBubbleRow& row : zb_auto_rows()) {
    const EqualStages stages = stages_of(row);
    const double memory_ratio = std::stod(row.memory_limit);  // "1.5p"
    const ChainCosts costs = chain_costs(stages, static_cast<std::int64_t>(memory_ratio * stages.ranks));
    const Synthesis made = synthesize_zero_bubble(costs);
    CAPTURE(stages.ranks);
    CAPTURE(stages.input_grad);
    CAPTURE(stages.weight_grad);
    CAPTURE(stages.hop);
    CAPTURE(memory_ratio);
    CHECK(made.span <= std::max(SimTime{static_cast<std::int64_t>(row.span)}, made.bound));
    check_within_memory(costs, made);
  }
}

TEST_SUITE_END();

}  // namespace plumb::test
