// Orders that a search finds train: ten of them, for random costs and memory on every kind of placement, give the
// gradients of one rank within 1e-5 of each tensor's largest (docs/design.md).

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

#include "schedules/search/search_schedule.h"
#include "tests/executor/small_model.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {

TEST_CASE("ten found orders of five placements give the gradients of one rank") {
  constexpr std::array kPlacements = {"chain", "loop", "v", "wave", "bidirectional"};
  constexpr int kFound = 10;
  constexpr int kMicrobatches = 6;
  std::mt19937_64 random(28);
  const std::vector<Layer> model = llama_model(4);
  const ModelValues expected = gradients_of(one_rank(model, kMicrobatches));
  int found_orders = 0;
  for (int k = 0; found_orders < kFound; ++k) {
    REQUIRE(k < 10 * kFound);
    const OrderQuestion question =
        random_question(random, {.placement = kPlacements[static_cast<std::size_t>(k) % kPlacements.size()],
                                 .ranks = 2,
                                 .microbatches = kMicrobatches});
    const std::optional<FoundSchedule> found = search_schedule(question, {.timed_actions = 2e5});
    if (!found) continue;  // its memory does not hold one micro-batch
    ++found_orders;
    CAPTURE(k);
    CHECK(worst_difference(gradients_of(spec_of(model, found->schedule)), expected) <= 1e-5);
  }
}

TEST_CASE("six found orders with overlapped pairs give the gradients of one rank") {
  constexpr std::array kPlacements = {"v", "bidirectional", "loop"};
  constexpr int kFound = 6;
  constexpr int kMicrobatches = 6;
  std::mt19937_64 random(29);
  const std::vector<Layer> model = llama_model(4);
  const ModelValues expected = gradients_of(one_rank(model, kMicrobatches));
  int found_orders = 0;
  for (int k = 0; found_orders < kFound; ++k) {
    REQUIRE(k < 20 * kFound);
    const OrderQuestion question =
        random_question(random, {.placement = kPlacements[static_cast<std::size_t>(k) % kPlacements.size()],
                                 .ranks = 2,
                                 .microbatches = kMicrobatches,
                                 .pairs = true});
    const std::optional<FoundSchedule> found = search_schedule(question, {.timed_actions = 2e5});
    const bool has_pairs = found && std::ranges::any_of(found->schedule.ranks, [](const std::vector<Action>& list) {
                             return std::ranges::any_of(list, &Action::overlaps_next);
                           });
    if (!has_pairs) continue;
    ++found_orders;
    CAPTURE(k);
    CHECK(worst_difference(gradients_of(spec_of(model, found->schedule)), expected) <= 1e-5);
  }
}

}  // namespace plumb::test
