#include "planner/threads/memo.h"

#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("an answer is worked out once for a key, and stays where it is") {
  Memo<int, int> squares;
  int worked_out = 0;
  const auto square = [&](int number) -> const int& {
    return squares.of(number, [&] {
      ++worked_out;
      return number * number;
    });
  };
  const int& nine = square(3);
  for (int number = 0; number < 100; ++number) CHECK(square(number) == number * number);
  CHECK(&square(3) == &nine);
  CHECK(worked_out == 100);
  const Memo<int, int> moved = std::move(squares);
  CHECK(&moved.of(3, [] { return 0; }) == &nine);
}

TEST_CASE("threads that ask at the same time have the same answers") {
  const Memo<int, int> squares;
  std::vector<std::vector<const int*>> answers(4);
  {
    std::vector<std::jthread> threads;
    for (std::vector<const int*>& own : answers) {
      threads.emplace_back([&] {
        for (int number = 0; number < 1000; ++number)
          own.push_back(&squares.of(number, [&] { return number * number; }));
      });
    }
  }
  for (const std::vector<const int*>& own : answers) CHECK(own == answers.front());
  CHECK(*answers.front()[30] == 900);
}

}  // namespace plumb::test
