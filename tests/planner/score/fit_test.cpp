#include "planner/score/fit.h"

#include <array>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"
#include "tests/planner/score/score_fixtures.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// Returns rows that were "measured" with another figure than the library has.
std::vector<PublishedRows> rows_with(const Override& figure) {
  ScoreLibrary other = small_library();
  other.overrides = {figure};
  return {{.file = "f", .rows = predicted_rows(other, {1, 2, 4, 8}, 1)}};
}

}  // namespace

TEST_CASE("a figure with which rows were made is found again, and judged on layouts that the fit did not see") {
  const FitResult fit = fit_constants(small_library(), rows_with({"cluster.device.gemm_efficiency", 0.6}),
                                      {parse_fit_constant("cluster.device.gemm_efficiency=0.3,0.9")}, Holdout::kLayout);
  CHECK(fit.preset == std::vector<double>{1});
  CHECK(fit.fitted.front() == doctest::Approx(0.6).epsilon(0.01));
  CHECK(fit.seen_groups == 2);
  CHECK(fit.unseen_groups == 2);
  CHECK(fit.zero_unseen.mean_pct > 10);
  CHECK(fit.fitted_unseen.mean_pct < 1);
}

TEST_CASE("each family of models is judged by what the others give, whatever follows the letters of its name") {
  std::vector<PublishedRows> files = rows_with({"cluster.device.gemm_efficiency", 0.6});
  const std::array<const char*, 4> names = {"Alpha 7B", "alpha-70B", "Beta", "gamma_2"};
  for (std::size_t i = 0; i < names.size(); ++i) files.front().rows[i]["model"]["name"] = names[i];
  const FitResult fit =
      fit_constants(small_library(), files, {parse_fit_constant("cluster.device.gemm_efficiency=0.3,0.9")},
                    parse_holdout("each-family"));
  REQUIRE(fit.folds.size() == 3);
  CHECK(fit.folds.front().left_out == "alpha");
  CHECK(fit.folds.front().unseen.count == 2);
  for (const FitFold& fold : fit.folds) {
    CHECK(fold.fitted.front() == doctest::Approx(0.6).epsilon(0.01));
    CHECK(fold.preset_unseen.mean_pct > 10);
    CHECK(fold.unseen.mean_pct < 1);
  }
  CHECK(fit.fitted_unseen.count == 4);
  CHECK(fit.fitted_seen.count == 2 * 4);
  CHECK(fit.fitted.front() == doctest::Approx(0.6).epsilon(0.01));
}

TEST_CASE("an efficiency that comes out at 1 says that the mapping is wrong") {
  // The rows were measured in a fifth of the time that any efficiency up to 1 allows.
  const ScoreLibrary library = small_library();
  const std::vector<PublishedRows> fast = {{.file = "f", .rows = predicted_rows(library, {1, 2, 4}, 0.2)}};
  check_refused<SpecError>(
      [&] {
        fit_constants(library, fast, {parse_fit_constant("cluster.device.gemm_efficiency=0.3,1.2")}, Holdout::kLayout);
      },
      "cluster.device.gemm_efficiency", "the mapping is wrong");
}

TEST_CASE("a fit refuses what it could not judge") {
  const ScoreLibrary library = small_library();
  const std::vector<PublishedRows> rows = {{.file = "f", .rows = predicted_rows(library, {1, 2}, 1)}};
  const FitConstant efficiency = parse_fit_constant("cluster.device.gemm_efficiency=0.3,0.9");
  check_refused<SpecError>([&] { fit_constants(library, rows, {efficiency}, Holdout::kModel); }, "fit", "one group");
  check_refused<SpecError>([&] { fit_constants(library, rows, {}, Holdout::kHalf); }, "0 constants", "give 1 to 5");
  check_refused<SpecError>(
      [&] { fit_constants(library, rows, std::vector<FitConstant>(6, efficiency), Holdout::kHalf); }, "6 constants",
      "give 1 to 5");
  check_refused<SpecError>([&] { fit_constants(library, {}, {efficiency}, Holdout::kHalf); }, "fit", "no row");
  check_refused<SpecError>(
      [&] { fit_constants(library, rows, {{.path = "stack.kernel_lunch_us", .interval = {}}}, Holdout::kHalf); },
      "stack.kernel_lunch_us", "no such figure");
}

TEST_CASE("bounds are two numbers behind a path of a cluster or a stack") {
  const FitConstant constant = parse_fit_constant("stack.kernel_launch_us=5,40");
  CHECK(constant.path == "stack.kernel_launch_us");
  CHECK(constant.interval.low == 5);
  CHECK(constant.interval.high == 40);
  for (const char* text :
       {"stack.kernel_launch_us=5", "model.vocab=1,2", "stack.kernel_launch_us=40,5", "stack.x=a,b"}) {
    check_refused<SpecError>([text] { parse_fit_constant(text); }, text, "LOW,HIGH");
  }
  check_refused<SpecError>([] { parse_holdout("rows"); }, "rows", "half, each-family, each-source");
}

}  // namespace plumb::test
