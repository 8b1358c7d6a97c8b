#include "executor/program/device/sm_split.h"

#include <numeric>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("SMs are shared out in whole groups, evenly or by shares") {
  using Groups = std::vector<int>;
  CHECK(split_multiprocessors(2, {}, 16).groups == Groups{8, 8});
  CHECK(split_multiprocessors(4, {}, 16).groups == Groups{4, 4, 4, 4});
  CHECK(split_multiprocessors(3, {}, 16).groups == Groups{5, 5, 5});  // one is left over
  CHECK(split_multiprocessors(2, {3, 1}, 16).groups == Groups{12, 4});
  CHECK(split_multiprocessors(3, {1, 2, 1}, 16).groups == Groups{4, 8, 4});
  CHECK(split_multiprocessors(2, {100, 1}, 16).groups == Groups{15, 1});     // nobody goes without
  CHECK(split_multiprocessors(3, {1, 1, 1}, 16).groups == Groups{6, 5, 5});  // as asked for: all of them
  CHECK(smallest_sm_group(9) == 8);
  CHECK(smallest_sm_group(10) == 8);
  CHECK(smallest_sm_group(8) == 4);
}

TEST_CASE("no split by whole groups is nearer to the shares") {
  for (int groups = 3; groups <= 16; ++groups) {
    const std::vector<int> shares = {5, 3, 2};
    const std::vector<int> split = split_multiprocessors(3, shares, groups).groups;
    CHECK(std::accumulate(split.begin(), split.end(), 0) == groups);
    // If one rank gave a group to another, the taker would have no fewer groups a share than the giver.
    for (std::size_t from = 0; from < 3; ++from)
      for (std::size_t to = 0; to < 3; ++to)
        if (split[from] > 1) CHECK((split[to] + 1) * shares[from] >= split[from] * shares[to]);
  }
}

TEST_CASE("more ranks than groups have no split, and shares are one a rank") {
  CHECK(split_multiprocessors(5, {}, 4).refused == "5 ranks and 4 groups of SMs");
  CHECK(split_multiprocessors(5, {}, 4).groups.empty());
  CHECK_THROWS_AS(split_multiprocessors(2, {1}, 16), SpecError);
  CHECK_THROWS_AS(split_multiprocessors(2, {1, 0}, 16), SpecError);
}

}  // namespace plumb::test
