#include "planner/spec/megatron_layout.h"

#include <random>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("the layout of DeepSeek-V3 on 16 x 2 stages in Megatron's documentation is its stages' layers") {
  // Without its module of multi-token prediction, which has a stage of its own there: "Et*3|(tt|)*29,m|L".
  const std::vector<int> split = split_of_megatron_layout("Et*3|(tt|)*29,|L");
  REQUIRE(split.size() == 32);
  CHECK(split.front() == 3);
  CHECK(split[1] == 2);
  CHECK(split[29] == 2);
  CHECK(split[30] == 0);
  CHECK(split[31] == 0);
}

TEST_CASE("brackets repeat what is in them, also brackets") {
  CHECK(split_of_megatron_layout("E(t|)*2(t*2|(tt|)*2)*2L") == std::vector{1, 1, 2, 2, 2, 2, 2, 2, 0});
  CHECK(split_of_megatron_layout("EL") == std::vector{0});
  CHECK(split_of_megatron_layout("Ettt|(tt|)*2,tL|") == std::vector{3, 2, 2, 1});
  CHECK(split_of_megatron_layout("Ettt|tL") == std::vector{3, 1});
}

TEST_CASE("a split that is written is read as the same") {
  CHECK(megatron_layout({3, 2, 2, 2, 0}) == "Et*3|(tt|)*3L");
  CHECK(megatron_layout({8}) == "Et*8L");
  CHECK(megatron_layout({1, 5, 1}) == "Et|t*5|tL");
  std::mt19937 random(3);
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<int> split(1 + random() % 12);
    for (int& layers : split) layers = static_cast<int>(random() % 4);
    CAPTURE(megatron_layout(split));
    CHECK(split_of_megatron_layout(megatron_layout(split)) == split);
  }
}

TEST_CASE("modules of multi-token prediction stand before the loss") {
  CHECK(split_of_megatron_layout("Et*3|t,m,L") == std::vector{3, 1});
  CHECK(split_of_megatron_layout("Et*3|tm*2L") == std::vector{3, 1});
  CHECK(megatron_layout({3, 1}, 2) == "Et*3|tmmL");
  CHECK(split_of_megatron_layout(megatron_layout({2, 2, 1}, 1)) == std::vector{2, 2, 1});
}

TEST_CASE("what is no such layout is refused with the remedy") {
  const auto refused = [](const char* text, const char* remedy) {
    check_refused<SpecError>([&] { split_of_megatron_layout(text); }, text, remedy);
  };
  refused("Et*3|(tt|)*29,m|L", "write them before L");
  refused("Etm|tL", "write them before L");
  refused("t*3|tL", "E in front");
  refused("Et|E|tL", "once");
  refused("Et|t", "L at the end");
  refused("Et*|tL", "number above 0");
  refused("Et*0|tL", "number above 0");
  refused("E(t|tL", "close it");
  refused("Et)|tL", "not opened");
  refused("Ex|tL", "\"x\"");
  refused("Et*99999999999999999999|tL", "too many");
  refused("E((((t*99)*99)*99)*99)|tL", "too many");
}

}  // namespace plumb::test
