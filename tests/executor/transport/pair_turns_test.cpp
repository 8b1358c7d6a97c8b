#include "executor/transport/pair_turns.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "executor/transport/transport.h"

namespace plumb::test {

TEST_CASE("two works take turns where they give them away, and the one that is left goes on alone") {
  PairTurns turns;
  std::string order;
  for (int repeat = 0; repeat < 3; ++repeat) {
    order.clear();
    turns.run(
        [&] {
          order += "a";
          turns.give_away();
          order += "b";
        },
        [&] {
          order += "1";
          CHECK(turns.are_two());
          turns.give_away();
          CHECK(!turns.are_two());
          order += "23";
        });
    CHECK(order == "a1b23");
  }
  CHECK(!turns.are_two());
}

TEST_CASE("a work that never gives its turn away ends before the other begins") {
  PairTurns turns;
  std::string order;
  turns.run([&] { order += "a"; }, [&] { order += "1"; });
  CHECK(order == "a1");
}

TEST_CASE("the failure of either work ends both, and is the one that is thrown") {
  PairTurns turns;
  std::string order;
  const auto failing = [] { throw std::runtime_error("broken"); };
  CHECK_THROWS_WITH_AS(turns.run(failing, [&] { order += "1"; }), "broken", std::runtime_error);
  CHECK(order.empty());  // it does not begin
  CHECK_THROWS_WITH_AS(turns.run(
                           [&] {
                             turns.give_away();
                             order += "a";
                           },
                           failing),
                       "broken", std::runtime_error);
  CHECK(order.empty());  // give_away() throws in the first
  turns.run([&] { order += "a"; }, [&] { order += "1"; });
  CHECK(order == "a1");
}

}  // namespace plumb::test
