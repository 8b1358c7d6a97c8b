// The simulator and the executor read one lowered schedule, so that both see every change of it alike.

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb::test {
namespace {

const Layer kSmallBlock =
    TransformerLayer{.hidden = 8, .heads = 2, .kv_heads = 2, .head_size = 4, .ffn = 16, .rotary_size = 4};

/// Returns a run with the embedding and a block on stage 0, and a block and the head on stage 1.
RunSpec spec_of_two_stages(const Schedule& schedule) {
  const std::string text = "a small text that is long enough for a few short sequences of bytes";
  return {.stage_layers = {{EmbeddingLayer{.vocab = 256, .hidden = 8}, kSmallBlock},
                           {kSmallBlock, HeadLayer{.vocab = 256, .hidden = 8}}},
          .grid = {.pipeline = 2},
          .schedule = schedule,
          .sequence = 8,
          .text = {text.begin(), text.end()}};
}

/// Returns the actions of each rank's spans, in order.
std::vector<std::vector<Action>> order_of(const Timeline& timeline) {
  std::vector<std::vector<Action>> order;
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<Action>& actions = order.emplace_back();
    for (const Span& span : rank.spans) actions.push_back(span.action);
  }
  return order;
}

struct Outcome {
  std::string refusal;  ///< empty if it ran
  std::vector<std::vector<Action>> order;
};

template <typename Work>
Outcome outcome_of(Work work) {
  try {
    return {.order = order_of(work())};
  } catch (const InputError& error) {
    return {.refusal = error.what()};
  }
}

/// Checks that both refuse with the same words, or both run the same actions in the same order.
void check_alike(const Schedule& schedule) {
  CAPTURE(to_text(schedule));
  const Outcome predicted = outcome_of([&] { return simulate(schedule, chunk_cost_table(2, {})).timeline; });
  const Outcome measured = outcome_of([&] { return run(spec_of_two_stages(schedule)).timelines.front(); });
  CHECK(predicted.refusal == measured.refusal);
  CHECK(predicted.order == measured.order);
  if (predicted.refusal.empty()) CHECK(predicted.order == schedule.ranks);
}

const Schedule kSchedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}));

}  // namespace

TEST_CASE("the lowered schedule is what is simulated and what is run") {
  check_alike(kSchedule);
}

TEST_CASE("two actions exchanged are refused by both or done by both in their new order") {
  for (std::size_t r = 0; r < kSchedule.ranks.size(); ++r) {
    for (std::size_t i = 0; i + 1 < kSchedule.ranks[r].size(); ++i) {
      Schedule exchanged = kSchedule;
      std::swap(exchanged.ranks[r][i], exchanged.ranks[r][i + 1]);
      check_alike(exchanged);
    }
  }
}

TEST_CASE("an action dropped is refused by both") {
  for (std::size_t r = 0; r < kSchedule.ranks.size(); ++r) {
    for (std::size_t i = 0; i < kSchedule.ranks[r].size(); ++i) {
      Schedule dropped = kSchedule;
      dropped.ranks[r].erase(dropped.ranks[r].begin() + static_cast<std::ptrdiff_t>(i));
      check_alike(dropped);
      CHECK_THROWS_AS(simulate(dropped, chunk_cost_table(2, {})), ScheduleError);
    }
  }
}

TEST_CASE("another placement is refused by both, or runs elsewhere in both") {
  Schedule wrong = kSchedule;
  wrong.stages[1].rank = 0;
  check_alike(wrong);
  CHECK_THROWS_AS(simulate(wrong, chunk_cost_table(2, {})), ScheduleError);

  Schedule mirrored = kSchedule;  // stage 0 on rank 1, stage 1 on rank 0
  std::swap(mirrored.ranks[0], mirrored.ranks[1]);
  std::swap(mirrored.stages[0].rank, mirrored.stages[1].rank);
  check_alike(mirrored);
}

}  // namespace plumb::test
