#include "planner/score/fit_error_bars.h"

#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"
#include "tests/planner/score/score_fixtures.h"

namespace plumb::test {
namespace {

/// Returns residuals of so many sources with `rows` each, whose logarithms are Laplace with that scale; mixtures of
/// experts, every second source, have twice the scale. Two devices have all of them.
std::vector<Residual> drawn(int sources, int rows, double scale, double shift = 0) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::vector<Residual> residuals;
  for (int source = 0; source < sources; ++source) {
    for (int row = 0; row < rows; ++row) {
      const double u = uniform(random);
      const bool experts = source % 2 == 1;
      const double sized = (experts ? 2 : 1) * scale;
      residuals.push_back({.source = "source " + std::to_string(source),
                           .stack = source < sources / 2 ? "one" : "other",
                           .traits = {.framework = FrameworkKnown::kNamed,
                                      .experts = experts,
                                      .devices = 8,
                                      .device = source % 4 < 2 ? "first" : "second"},
                           .log_error = shift - sized * std::copysign(std::log(1 - 2 * std::abs(u)), u)});
    }
  }
  return residuals;
}

}  // namespace

TEST_CASE("intervals that are fitted on the other sources cover four of five rows of each left out") {
  const std::vector<Residual> residuals = drawn(24, 60, 0.1, 0.05);
  const std::vector<LeftOutGroup> groups = judge_error_bars(residuals, LeftOutBy::kSource);
  CHECK(groups.size() == 24);
  const LeftOutSummary summary = summary_of(groups);
  CHECK(summary.coverage_ratio == doctest::Approx(0.8).epsilon(0.05));
  CHECK(judge_error_bars(residuals, LeftOutBy::kFramework).size() == 24);
  CHECK(judge_error_bars(residuals, LeftOutBy::kDevice).size() == 24);
}

TEST_CASE("the fit finds the scale, what widens it, and the shift") {
  const ErrorBars bars = fit_error_bars(drawn(24, 200, 0.1, 0.05));
  const ErrorTraits dense{.devices = 8, .device = "first"}, mixture{.experts = true, .devices = 8, .device = "first"};
  const double plain = std::exp(log_scale_of(bars.step_time, dense, true));
  CHECK(bars.step_time.factor * plain == doctest::Approx(0.1 * std::log(5)).epsilon(0.15));
  CHECK(std::exp(log_scale_of(bars.step_time, mixture, true)) / plain == doctest::Approx(2).epsilon(0.2));
  CHECK(bars.step_time.shift[0] == doctest::Approx(0.05).epsilon(0.3));
  CHECK(bars.step_time.sources == 24);
  CHECK(bars.seen_devices == std::vector<std::string>{"first", "second"});
}

TEST_CASE("a source weighs as much as any other, however many rows it has") {
  std::vector<Residual> residuals = drawn(12, 40, 0.05);
  const auto own = residuals.size();
  for (int copy = 0; copy < 50; ++copy) {
    for (std::size_t i = 0; i < 40; ++i) residuals.push_back(residuals[i]);
  }
  const ErrorBars many = fit_error_bars(residuals);
  residuals.resize(own);
  const ErrorBars few = fit_error_bars(residuals);
  CHECK(many.step_time.factor == doctest::Approx(few.step_time.factor).epsilon(0.02));
  CHECK(many.step_time.log_scale[0] == doctest::Approx(few.step_time.log_scale[0]));
}

TEST_CASE("Plumb's own executor has the scale of its own runs, and without any that of unknown frameworks") {
  std::vector<Residual> residuals = drawn(8, 20, 0.1);
  const auto own = static_cast<std::size_t>(FrameworkKnown::kOwn);
  const ErrorBars without = fit_error_bars(residuals);
  CHECK(without.step_time.log_scale[own] ==
        without.step_time.log_scale[static_cast<std::size_t>(FrameworkKnown::kUnknown)]);
  for (const double error : {0.01, -0.01, 0.01, 0.01, -0.01}) {
    residuals.push_back({.source = "own runs", .traits = {.framework = FrameworkKnown::kOwn}, .log_error = error});
  }
  const ErrorScale with = fit_error_bars(residuals).step_time;
  CHECK(with.factor * std::exp(with.log_scale[own]) < 0.03);
}

TEST_CASE("the residuals of a score are those of its steps, with what decides how far off they may be") {
  const ScoreLibrary library = small_library();
  const SourceScore score = score_rows(library, {"small.json", predicted_rows(library, {1, 2, 4}, 1.25)});
  const std::vector<Residual> residuals = residuals_of({score});
  REQUIRE(residuals.size() == 3);
  for (const Residual& residual : residuals) {
    CHECK(residual.log_error == doctest::Approx(std::log(1.25)));
    CHECK(residual.source == "owner/small");
    CHECK(residual.stack == "plain");
    CHECK(residual.traits.framework == FrameworkKnown::kNamed);
    CHECK(residual.traits.devices == 8);
  }
}

TEST_CASE("what is left out has a known name") {
  CHECK(parse_left_out_by("each-device") == LeftOutBy::kDevice);
  check_refused<SpecError>([] { parse_left_out_by("half"); }, "half", "each-source");
}

}  // namespace plumb::test
