#include "planner/threads/workers.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("each item of a loop runs once, on any number of threads") {
  for (const int threads : {0, 1, 2, 5}) {
    CAPTURE(threads);
    Workers workers(threads);
    for (const std::size_t count : {0, 1, 2, 3, 1000}) {
      std::vector<int> runs(count);
      workers.each(count, [&](std::size_t i) { ++runs[i]; });
      CHECK(runs == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("what the item of the least number throws is thrown, and the workers go on") {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    const auto fail_behind_10 = [&](std::size_t i) {
      if (i > 10) throw std::runtime_error(std::to_string(i));
    };
    CHECK_THROWS_WITH_AS(workers.each(100, fail_behind_10), "11", std::runtime_error);
    std::vector<int> runs(100);
    workers.each(100, [&](std::size_t i) { ++runs[i]; });
    CHECK(runs == std::vector<int>(100, 1));
  }
}

}  // namespace plumb::test
