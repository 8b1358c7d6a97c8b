#include "planner/logs/sampled_values.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("numbers are kept as they come up to a bound, and of more those at equal distances from the first on") {
  SampledValues values;
  CHECK(values.kept().empty());
  for (std::size_t i = 0; i < SampledValues::kMost; ++i) values.add(static_cast<double>(i));
  REQUIRE(values.kept().size() == SampledValues::kMost);
  CHECK(values.kept().back() == SampledValues::kMost - 1);
  for (std::size_t i = SampledValues::kMost; i < 5 * SampledValues::kMost; ++i) values.add(static_cast<double>(i));
  CHECK(values.count() == 5 * SampledValues::kMost);
  CHECK(values.kept().size() <= SampledValues::kMost);
  CHECK(values.kept().size() >= SampledValues::kMost / 2);
  const double stride = values.kept()[1];
  CHECK(stride == 8);
  for (std::size_t i = 0; i < values.kept().size(); ++i) CHECK(values.kept()[i] == stride * static_cast<double>(i));
}

}  // namespace plumb::test
