#include "simulator/engine/action_costs.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

const Schedule kBuckets = parse_schedule("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP");
const Action kHost{.op = Op::kBackward, .stage = 0, .microbatch = 0};

Action bucket(int part) {
  return {.op = Op::kReduceGrad, .part = static_cast<std::int16_t>(part), .stage = 0};
}

CostTable with_offsets(std::vector<Seconds> offsets) {
  CostTable costs = whole_costs(1, 1, 4);
  costs.stages[0].bucket_offsets = std::move(offsets);
  return costs;
}

/// Without the table's pairs, which nobody asks for here.
ActionCosts converted(const CostTable& costs) {
  return convert_costs(kBuckets, costs);
}

}  // namespace

TEST_SUITE("action_costs") {
  TEST_CASE("a bucket is complete at its offset, or at the end of its host where there is none") {
    const ActionCosts costs = converted(with_offsets({Seconds{1}, Seconds{4}}));
    CHECK(bucket_offset(costs, kHost, bucket(0)) == kSecond);
    CHECK(bucket_offset(costs, kHost, bucket(1)) == 4 * kSecond);
    CHECK(bucket_offset(converted(with_offsets({})), kHost, bucket(1)) == 4 * kSecond);
  }

  TEST_CASE("offsets behind the host's end, out of order, negative or missing are refused") {
    const ActionCosts late = converted(with_offsets({Seconds{1}, Seconds{5}}));
    CHECK_THROWS_WITH_AS(bucket_offset(late, kHost, bucket(1)),
                         "0REDUCE_GRAD/1 starts 5 s into 0B0, which lasts 4 s: give its bucket an earlier offset",
                         SpecError);
    CHECK_THROWS_WITH_AS(
        converted(with_offsets({Seconds{2}, Seconds{1}})),
        "bucket 1 of stage 0 is complete before bucket 0: number the buckets in the order of completion", SpecError);
    CHECK_THROWS_AS(converted(with_offsets({Seconds{-1}})), SpecError);
    const ActionCosts one = converted(with_offsets({Seconds{1}}));
    CHECK_THROWS_WITH_AS(bucket_offset(one, kHost, bucket(1)),
                         "0REDUCE_GRAD/1 has no offset: stage 0 has offsets for 1 buckets; give one for each",
                         SpecError);
  }
}

}  // namespace plumb::test
