// Activations that move: which may be taken away, and when they have to be back.

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/only_violation.h"

namespace plumb::test {
namespace {

/// Returns the one violation of a schedule, which is one of the rule of moves.
Violation only_broken_move(std::string_view text) {
  const Violation violation = only_violation(text);
  CHECK(violation.rule == Rule::kMoved);
  return violation;
}

}  // namespace

TEST_CASE("activations may go behind their forward and come back ahead of their backward") {
  CHECK(validate(parse_schedule("0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1")).empty());
  CHECK(validate(parse_schedule("0F0 0OFFLOAD0 0RELOAD0 0R0 0I0 0W0")).empty());
  CHECK(validate(parse_schedule("0F0 0EVICT0 0LOAD0 0B0\n1F0 1B0")).empty());
  CHECK(validate(parse_schedule("0F0 0OFFLOAD0 0F0/1 0B0/1 0RELOAD0 0B0")).empty());
}

TEST_CASE("what is not made yet cannot be taken away") {
  CHECK(to_text(only_broken_move("0OFFLOAD0 0F0 0B0")) ==
        "rank 0, position 0: 0OFFLOAD0 moves activations that 0F0 has not made; list it behind (moved)");
  CHECK(only_broken_move("0EVICT0 0F0 0B0\n1F0 1B0").position == 0);
}

TEST_CASE("what is away cannot be taken away again") {
  const Violation violation = only_broken_move("0F0 0OFFLOAD0 0EVICT0 0RELOAD0 0B0\n1F0 1B0");
  CHECK(violation.rank == 0);
  CHECK(violation.position == 2);
  CHECK(violation.message == "0EVICT0 moves activations that 0OFFLOAD0 (position 1) has taken away; remove one");
}

TEST_CASE("what is here cannot be brought back, and comes back the way it went") {
  CHECK(to_text(only_broken_move("0F0 0RELOAD0 0B0")) ==
        "rank 0, position 1: 0RELOAD0 brings back activations that no 0OFFLOAD0 ahead of it has taken away; add that, "
        "or remove it (moved)");
  CHECK(only_broken_move("0F0 0OFFLOAD0 0LOAD0 0B0\n1F0 1B0").position == 2);
}

TEST_CASE("a backward needs its activations back, and is named once") {
  CHECK(
      to_text(only_broken_move("0F0 0OFFLOAD0 0B0")) ==
      "rank 0, position 2: 0B0 needs activations that 0OFFLOAD0 (position 1) has taken away; list 0RELOAD0 ahead of it "
      "(moved)");
  CHECK(only_broken_move("0F0 0EVICT0 0I0 0W0\n1F0 1B0").position == 2);
  CHECK(only_broken_move("0F0 0OFFLOAD0 0R0 0B0").position == 2);
}

TEST_CASE("what a backward has begun to use up, or none will use, stays") {
  CHECK(only_broken_move("0F0 0I0 0OFFLOAD0 0W0").message ==
        "0OFFLOAD0 moves activations whose backward begins at position 1; list it ahead");
  CHECK(only_broken_move("0F0 0OFFLOAD0").message == "0OFFLOAD0 moves activations that no backward needs; remove it");
}

TEST_CASE("the rank in the middle has no partner") {
  const Violation violation = only_broken_move("0F0 0B0\n1F0 1EVICT0 1LOAD0 1B0\n2F0 2B0");
  CHECK(violation.rank == 1);
  CHECK(violation.message ==
        "1EVICT0 moves activations to the partner rank, but rank 1 is its own; use 1OFFLOAD0 instead");
}

}  // namespace plumb::test
