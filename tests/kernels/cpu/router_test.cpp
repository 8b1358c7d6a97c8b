#include "kernels/cpu/router.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {

TEST_CASE("scores become probabilities, and a token picks the largest, of equal ones the first") {
  Values scores = {0.0F, std::log(2.0F), 0.0F, std::log(4.0F), 1.0F, 1.0F, 1.0F, 1.0F};
  std::vector<std::int32_t> picks(4);
  router_forward(scores.data(), picks.data(), {.tokens = 2, .experts = 4, .picks = 2});
  CHECK(picks == std::vector<std::int32_t>{3, 1, 0, 1});
  CHECK(relative_difference(scores, {0.125F, 0.25F, 0.125F, 0.5F, 0.25F, 0.25F, 0.25F, 0.25F}) < 1e-6);
  Values weights(4);
  pick_weights(weights.data(), scores.data(), picks.data(), {2, 4, 2}, false);
  CHECK(relative_difference(weights, {0.5F, 0.25F, 0.25F, 0.25F}) < 1e-6);
  pick_weights(weights.data(), scores.data(), picks.data(), {2, 4, 2}, true);
  CHECK(relative_difference(weights, {2.0F / 3, 1.0F / 3, 0.5F, 0.5F}) < 1e-6);
}

TEST_CASE("with a sigmoid a probability depends on its score alone") {
  Values scores = {0.0F, std::log(3.0F), -std::log(3.0F), std::log(9.0F)};
  std::vector<std::int32_t> picks(2);
  router_forward(scores.data(), picks.data(), {.tokens = 1, .experts = 4, .picks = 2, .sigmoid = true});
  CHECK(picks == std::vector<std::int32_t>{3, 1});
  CHECK(relative_difference(scores, {0.5F, 0.75F, 0.25F, 0.9F}) < 1e-6);
}

TEST_CASE("a bias of picks chooses, and weighs nothing") {
  Values scores = {0.0F, std::log(3.0F), -std::log(3.0F), std::log(9.0F)};
  const Values bias = {0.5F, 0.0F, 0.7F, 0.0F};  // sums 1, 0.75, 0.95, 0.9
  std::vector<std::int32_t> picks(2);
  const RouterSize size{.tokens = 1, .experts = 4, .picks = 2, .sigmoid = true};
  router_forward(scores.data(), picks.data(), size, bias.data());
  CHECK(picks == std::vector<std::int32_t>{0, 2});
  Values weights(2);
  pick_weights(weights.data(), scores.data(), picks.data(), size, false);
  CHECK(relative_difference(weights, {0.5F, 0.25F}) < 1e-6);
}

TEST_CASE("picks come from the groups with the best experts") {
  // Two experts a group; the group of the largest one is picked first, whatever its other expert.
  Values scores = {1.0F, 1.2F, 3.0F, -1.0F, 2.0F, 2.5F, 0.0F, 0.0F};
  std::vector<std::int32_t> picks(3);
  RouterSize size{.tokens = 1, .experts = 8, .picks = 3, .expert_groups = 4, .groups_per_token = 2};
  Values softmax = scores;
  router_forward(softmax.data(), picks.data(), size);
  CHECK(picks == std::vector<std::int32_t>{2, 5, 4});
  // With a sigmoid the score of a group is the sum of as many as it gives in the mean, here of 3 / 2 = 1.
  size.sigmoid = true;
  Values single = scores;
  router_forward(single.data(), picks.data(), size);
  CHECK(picks == std::vector<std::int32_t>{2, 5, 4});
  size.picks = 2;
  size.groups_per_token = 1;  // sums of two: the third group's are the largest
  picks.resize(2);
  router_forward(scores.data(), picks.data(), size);
  CHECK(picks == std::vector<std::int32_t>{5, 4});
}

TEST_CASE("of equal groups and experts the first are picked, and a bias chooses groups") {
  Values scores(8, 1.0F);
  const Values bias = {0, 0, 0, 0, 0, 0, 0.5F, 0};
  std::vector<std::int32_t> picks(3);
  const RouterSize size{
      .tokens = 1, .experts = 8, .picks = 3, .sigmoid = true, .expert_groups = 4, .groups_per_token = 2};
  Values free = scores;
  router_forward(free.data(), picks.data(), size);
  CHECK(picks == std::vector<std::int32_t>{0, 1, 2});
  router_forward(scores.data(), picks.data(), size, bias.data());
  CHECK(picks == std::vector<std::int32_t>{6, 0, 1});
}

TEST_CASE("the excess of picks is counted in whole numbers, which sum up over ranks") {
  const RouterSize size{.tokens = 2, .experts = 4, .picks = 2};
  const std::vector<std::int32_t> picks = {3, 1, 3, 0};
  Values excess(4);
  add_excess_picks(excess.data(), picks.data(), size);
  CHECK(excess == Values{0, 0, -4, 4});  // 4 experts with a mean of one pick
}

TEST_CASE("the router's gradient agrees with finite differences, of what the picks weigh and of what is added") {
  for (const int variant : {0, 1, 2, 3}) {
    const bool renormalised = variant % 2 == 1;
    const RouterSize size{.tokens = 6, .experts = 5, .picks = 2, .sigmoid = variant >= 2};
    CAPTURE(variant);
    Values scores = random_values(30, 3, 2.0F);
    const Values of_weights = random_values(12, 4), added = random_values(10, 5);  // a row for three tokens
    std::vector<std::int32_t> picks(12);
    Values gradient = scores;
    router_forward(gradient.data(), picks.data(), size);
    router_backward(gradient.data(), of_weights.data(), picks.data(), size, renormalised, added.data(), 3);
    const auto objective = [&] {
      Values probabilities = scores, weights(12);
      std::vector<std::int32_t> own(12);
      router_forward(probabilities.data(), own.data(), size);
      REQUIRE(own == picks);
      pick_weights(weights.data(), probabilities.data(), picks.data(), size, renormalised);
      double sum = weighted_sum(of_weights, weights);
      for (std::size_t i = 0; i < 30; ++i) sum += double(probabilities[i]) * double(added[i / 15 * 5 + i % 5]);
      return sum;
    };
    CHECK(gradient_error(scores, gradient, objective, 2e-3F) < kGradientTolerance);
  }
}

}  // namespace plumb::test
