#include "tools/reports/time_by_cause.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"
#include "tools/reports/table.h"

namespace plumb::test {

TEST_CASE("the causes of a rank add up to the step, the largest stands first") {
  const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));
  const Simulation simulation = simulate(lowered, chunk_cost_table(4, {}));
  const TimeByCause time = time_by_cause(simulation.busy, idle_by_cause(simulation.timeline), {});
  CHECK(time.causes.front() == "computing");
  for (const std::vector<double>& rank : time.ranks) {
    double sum = 0;
    for (const double of : rank) sum += of;
    CHECK(sum == doctest::Approx(33));  // (m + p - 1) (F + B)
  }
  const std::string text = to_text(time, duration_text);
  CHECK(text.find("computing") < text.find("idle: "));
  CHECK(text.find("72.7 %") != std::string::npos);  // m / (m + p - 1)
}

TEST_CASE("collectives inside actions are not computing") {
  ExposedTime exposed{.computing = SimTime{60}};
  exposed.collectives[static_cast<std::size_t>(Group::kTensor)] = SimTime{30};
  IdleByCause idle{};
  idle[static_cast<std::size_t>(IdleCause::kDrain)] = SimTime{10};
  const TimeByCause time = time_by_cause({SimTime{90}}, {idle}, {exposed});
  CHECK(time.causes == std::vector<std::string>{"computing", "tensor collectives", "idle: drain"});
  CHECK(time.ranks.front() == std::vector<double>{60e-12, 30e-12, 10e-12});
}

}  // namespace plumb::test
