#include "simulator/network/flow/flow_derivatives.h"

#include <doctest/doctest.h>

#include "simulator/network/flow/flows.h"

namespace plumb::test {
namespace {

constexpr SimTime kMicrosecond{1'000'000};

}  // namespace

TEST_CASE("two flows on one link: what the second end owes to each work, to the start and to the capacity") {
  // A: 60 us alone at 10 GB/s from 0; B: 20 us alone at 10 GB/s from s = 20 us, over a link of 10 GB/s. B ends at
  // s + 2 b = 60 us, A at a + b = 80 us. Both rates alone are just the link's, so that the capacity counts while they
  // share: 40 us for B's end, all of it as much again as it is wide.
  DerivativeTape tape;
  const auto start = tape.add({DerivativeTape::by(0, 1)});
  Flows flows({10e9}, {{.uses = {{0, 1}}}});
  flows.record(tape, 5);
  flows.start({.id = 1, .cap_bytes_per_second = 10e9, .alone = 60 * kMicrosecond, .alone_number = 1, .cap_number = 3},
              SimTime{0});
  REQUIRE(flows.next_end() == 60 * kMicrosecond);
  tape.now = start;
  flows.start({.id = 2, .cap_bytes_per_second = 10e9, .alone = 20 * kMicrosecond, .alone_number = 2, .cap_number = 4},
              20 * kMicrosecond);
  REQUIRE(flows.next_end() == 60 * kMicrosecond);
  REQUIRE(flows.take_ended() == std::vector<std::int32_t>{2});
  const std::vector<double> of_b = tape.gradient(flows.ended_nodes()[0], 6);
  CHECK(of_b[0] == doctest::Approx(1));
  CHECK(of_b[1] == doctest::Approx(0));
  CHECK(of_b[2] == doctest::Approx(2));
  CHECK(of_b[5] * 10e9 == doctest::Approx(-40e6));  // ps
  CHECK(of_b[3] == doctest::Approx(0));
  // The rate alone is what the work was priced by: a faster one leaves the same time's work as more bytes.
  CHECK(of_b[4] * 10e9 == doctest::Approx(40e6));
  REQUIRE(flows.next_end() == 80 * kMicrosecond);
  REQUIRE(flows.take_ended() == std::vector<std::int32_t>{1});
  const std::vector<double> of_a = tape.gradient(flows.ended_nodes()[0], 6);
  CHECK(of_a[0] == doctest::Approx(0));
  CHECK(of_a[1] == doctest::Approx(1));
  CHECK(of_a[2] == doctest::Approx(1));
  CHECK(of_a[5] * 10e9 == doctest::Approx(-20e6 - 20e6));
}

}  // namespace plumb::test
