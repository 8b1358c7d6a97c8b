#include "tools/reports/verdict.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

/// A step that was predicted to last 100 ms.
Comparison measured_at(double milliseconds) {
  const auto of = [](double ms) { return to_sim_time(Seconds{ms * 1e-3}); };
  return {.steps = 5,
          .step = {.predicted = of(100), .measured = of(milliseconds)},
          .step_interval = {.low = of(milliseconds - 0.5), .high = of(milliseconds + 0.5), .confidence_ratio = 0.94},
          .ranks = {{.predicted_peak_bytes = 1000, .measured_peak_bytes = 1010},
                    {.predicted_peak_bytes = 1000, .measured_peak_bytes = 980}},
          .causes = {{.kind = ErrorCause::Kind::kWaiting, .time = {.predicted = of(0), .measured = of(7)}}}};
}

Verdict verdict(const Comparison& comparison, const MachineState& machine = {}) {
  return verdict_of(comparison, {}, machine, 10);
}

}  // namespace

TEST_CASE("a step and memory within the tolerance pass, also on a disturbed machine") {
  const Verdict good = verdict(measured_at(105), {.others = OtherPrograms{.cores = 2}});
  CHECK(good.outcome == Outcome::kPass);
  CHECK(to_text(good) ==
        "PASS: a step of 100 ms was predicted, 105 ms measured (-4.8 %), peak memory within +2.0 %; within 10 %");
}

TEST_CASE("a step that is off fails with its largest cause where nothing disturbed it") {
  const Verdict bad = verdict(measured_at(120));
  CHECK(bad.outcome == Outcome::kFail);
  CHECK(bad.why ==
        "a step of 100 ms was predicted, 120 ms measured (-16.7 %), more than 10 %; the largest cause is waiting for "
        "inputs, predicted 0 s and measured 7.00 ms along the critical path");
}

TEST_CASE("a step that is off decides nothing on a machine that was not itself") {
  const MachineState busy{.others = OtherPrograms{.cores = 0.4, .host = 0.1}};
  CHECK(verdict(measured_at(120), busy).outcome == Outcome::kDisturbed);
  CHECK(verdict(measured_at(120), busy).why.find("took 0.50 cores: run it again") != std::string::npos);
  CHECK(verdict(measured_at(120), {.after = MachineSpeed{.ratio = 0.79}}).outcome == Outcome::kDisturbed);
  CHECK(verdict(measured_at(120), {.after = MachineSpeed{.ratio = 0.95}}).outcome == Outcome::kFail);
  Comparison scattered = measured_at(120);
  scattered.step_interval.high = to_sim_time(Seconds{0.15});
  CHECK(verdict(scattered).outcome == Outcome::kDisturbed);
}

TEST_CASE("memory that is off fails whatever disturbed the machine") {
  Comparison comparison = measured_at(100);
  comparison.ranks[1].measured_peak_bytes = 800;
  const Verdict bad = verdict(comparison, {.others = OtherPrograms{.cores = 2}});
  CHECK(bad.outcome == Outcome::kFail);
  CHECK(bad.why.starts_with("the peak memory of rank 1 is off by +25.0 %, more than 10 %; "));
}

}  // namespace plumb::test
