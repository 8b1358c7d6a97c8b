// Weight policies name a version that a stage must have made.

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

TEST_CASE("two_buffered: a forward two batches ahead needs a version that is not made yet") {
  CHECK(validate(parse_schedule("weights: two_buffered\n0F0 0F1 0B0 0OPTIMIZER_STEP 0F2 0B1 0OPTIMIZER_STEP 0B2 "
                                "0OPTIMIZER_STEP"))
            .empty());
  const std::vector<Violation> found = validate(
      parse_schedule("weights: two_buffered\n0F0 0F1 0F2 0B0 0OPTIMIZER_STEP 0B1 0OPTIMIZER_STEP 0B2 0OPTIMIZER_STEP"));
  REQUIRE(found.size() == 1);
  CHECK(
      to_text(found.front()) ==
      "rank 0, position 2: 0F2 needs version 1 of its weights, but only 0 are made ahead of it; put more micro-batches "
      "before each OPTIMIZER_STEP, or choose another weight policy (version)");
}

TEST_CASE("vertical_sync: a stage behind the first runs a micro-batch with the version that the first one gave it") {
  const std::string rank_0 = "weights: vertical_sync\n0F0 0B0 0OPTIMIZER_STEP 0F1 0B1 0OPTIMIZER_STEP\n";
  CHECK(validate(parse_schedule(rank_0 + "1F0 1B0 1OPTIMIZER_STEP 1F1 1B1 1OPTIMIZER_STEP")).empty());
  const std::vector<Violation> found = validate(parse_schedule(rank_0 + "1F0 1B0 1F1 1B1 1OPTIMIZER_STEP"));
  REQUIRE(found.size() == 2);
  CHECK(to_text(found.front()).starts_with("rank 1, position 2: 1F1 needs version 1 of its weights, but only 0 are"));
  CHECK(found.back().position == 3);
}

}  // namespace plumb::test
