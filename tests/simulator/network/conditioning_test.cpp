#include "simulator/network/conditioning.h"

#include <doctest/doctest.h>

#include "tests/simulator/network/networks.h"

namespace plumb::test {

TEST_SUITE("conditioning") {
  TEST_CASE("a step whose costs add up along a path has a condition number of 1 and is not simulated again") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = whole_costs(4, 1.1, 2.3, 0.01);
    const NetworkSpec slow{.speeds = {1, 1, 0.5, 1}};
    const Conditioning found = conditioning_of(schedule, *network_gradient(schedule, costs, slow));
    CHECK(found.number == doctest::Approx(1).epsilon(1e-9));
    CHECK(!found.is_ill);
    CHECK(found.runs == 0);
  }

  TEST_CASE("an ill-conditioned step is told by how it spreads, the same each time") {
    const Schedule schedule = lowered("1f1b", 4, 8);
    const CostTable costs = whole_costs(4, 1.1, 2.3, 0.01);
    const NetworkSpec slow{.speeds = {1, 1, 0.5, 1}};
    NetworkGradient gradient = *network_gradient(schedule, costs, slow);
    for (double& derivative : gradient.by_number) derivative *= 1000;
    const Conditioning found = conditioning_of(schedule, gradient);
    CHECK(found.is_ill);
    CHECK(found.runs == 8);
    // No path has more actions than there are, and none becomes shorter.
    CHECK(found.by_picosecond.shortest >= gradient.makespan);
    CHECK(found.by_picosecond.longest <= gradient.makespan + SimTime{2 * action_count(schedule)});
    CHECK(found.by_per_mille.shortest > found.by_picosecond.longest);
    CHECK(to_seconds(found.by_per_mille.longest) < 1.001 * to_seconds(gradient.makespan));
    CHECK(conditioning_of(schedule, gradient).by_per_mille.longest == found.by_per_mille.longest);
  }
}

}  // namespace plumb::test
