// Tests of runs whose operations were timed. The cases of the suite "oracle" print their tables; tests/README.md has
// the command.

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/measured_ops.h"
#include "schedules/error.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// The 1F1B-I rows of the zero-bubble paper print "one layer per chunk (max)": 22 and 46 layers on 8 and 16 ranks.
constexpr int kLayersOfAStage = 3;

json small_run_row() {
  return json::parse(R"({"id": "small", "pp": 4, "n_microbatches": 8, "schedule": "1F1B",
    "profiled_ms": {"TF": 1, "TB": 1, "TW": 1, "Tcomm": 0}, "measured": {"step_time_ms": 36}})");
}

MeasuredRun run_of(const json& row) {
  const MeasuredRunReading reading = measured_run(row, "rows[0]", kLayersOfAStage);
  REQUIRE_MESSAGE(reading.run.has_value(), reading.reason);
  return *reading.run;
}

std::string reason_of(const json& row) {
  return measured_run(row, "rows[0]", kLayersOfAStage).reason;
}

std::string refusal_of(const json& row) {
  try {
    measured_run(row, "rows[0]", kLayersOfAStage);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

/// Returns the rows of a published file that can be run; none where the file is absent.
std::vector<MeasuredRun> published_runs(const std::string& file) {
  const std::optional<std::string> text = shared_text("published/" + file);
  if (!text) return {};
  const json rows = json::parse(*text).at("rows");
  std::vector<MeasuredRun> runs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRunReading reading = measured_run(rows[i], fmt::format("{}: rows[{}]", file, i), kLayersOfAStage);
    if (reading.run) runs.push_back(*reading.run);
  }
  return runs;
}

/// Returns every second run, from the first or from the second on.
std::vector<MeasuredRun> every_second(const std::vector<MeasuredRun>& runs, std::size_t first) {
  std::vector<MeasuredRun> half;
  for (std::size_t i = first; i < runs.size(); i += 2) half.push_back(runs[i]);
  return half;
}

struct ErrorSize {
  double mean = 0;
  double worst = 0;
};

/// Prints a line for each run, and returns the size of the errors.
ErrorSize print_errors(const std::string& title, const std::vector<MeasuredRun>& runs, Seconds overhead) {
  fmt::print("\n{}\n{:<44} {:>12} {:>12} {:>8}\n", title, "run", "predicted ms", "measured ms", "error %");
  const std::vector<double> errors = step_time_errors(runs, overhead);
  ErrorSize size;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double measured_ms = runs[i].measured_step.count() * 1e3;
    fmt::print("{:<44} {:>12.1f} {:>12.1f} {:>+8.2f}\n", runs[i].id, measured_ms * (1 + errors[i]), measured_ms,
               100 * errors[i]);
    size.mean += std::abs(errors[i]) / static_cast<double>(runs.size());
    size.worst = std::max(size.worst, std::abs(errors[i]));
  }
  fmt::print("mean {:.2f} %, worst {:.2f} %\n", 100 * size.mean, 100 * size.worst);
  return size;
}

}  // namespace

TEST_SUITE("measured_ops") {
  TEST_CASE("the overhead of an action adds to each of the two actions of a micro-batch of 1F1B") {
    // The step is (m + p - 1)(F + B) with F = 1 ms and B = 2 ms.
    const MeasuredRun run = run_of(small_run_row());
    CHECK(predicted_step_time(run, Seconds{0}).count() == doctest::Approx(33e-3));
    CHECK(predicted_step_time(run, Seconds{1e-3}).count() == doctest::Approx(11 * 5e-3));
  }

  TEST_CASE("an interleaved run has v forwards and v backwards of a v-th of the time each") {
    // The step is m (F + B) + (p - 1)(F + B) / v; the overhead o makes F + 3 o of F.
    json row = small_run_row();
    row["schedule"] = "1F1B-I";
    const MeasuredRun run = run_of(row);
    CHECK(predicted_step_time(run, Seconds{0}).count() == doctest::Approx(8 * 3e-3 + 3 * 1e-3));
    CHECK(predicted_step_time(run, Seconds{1e-3}).count() == doctest::Approx(8 * 9e-3 + 3 * 3e-3));
    row["vpp"] = 2;
    CHECK(predicted_step_time(run_of(row), Seconds{0}).count() == doctest::Approx(8 * 3e-3 + 3 * 1.5e-3));
  }

  TEST_CASE("a zero-bubble run is judged by its span, and has no bubble in it with twice the memory") {
    // In ZB-2p with m >= 2p - 1 and F = I = W a rank works m (F + I + W) without a gap (Qi et al. 2024).
    json row = small_run_row();
    row["schedule"] = "ZB-2p";
    const MeasuredRun run = run_of(row);
    CHECK(run.by_span);
    CHECK(predicted_step_time(run, Seconds{0}).count() == doctest::Approx(24e-3));
    CHECK(predicted_step_time(run, Seconds{1e-3}).count() == doctest::Approx(48e-3));
  }

  TEST_CASE("times by rank are those of its stage") {
    // The slowest stage is busy throughout, and each other works once before it and once behind it.
    json row = small_run_row();
    row.erase("profiled_ms");
    row["measured"]["fwd_us_per_rank"] = {1000, 1000, 1000, 3000};
    row["measured"]["bwd_us_per_rank"] = {2000, 2000, 2000, 4000};
    CHECK(predicted_step_time(run_of(row), Seconds{0}).count() == doctest::Approx(7 * 7e-3 + 16e-3));
    row["measured"]["bwd_us_per_rank"] = {2000, 2000};
    CHECK(refusal_of(row) == "rows[0].measured.bwd_us_per_rank: give a list of 4 numbers, one a rank");
  }

  TEST_CASE("the fitted overhead is found again from runs that have it") {
    std::vector<MeasuredRun> runs;
    for (const char* schedule : {"1F1B", "1F1B-I", "ZB-1p"}) {
      json row = small_run_row();
      row["schedule"] = schedule;
      MeasuredRun run = run_of(row);
      run.measured_step = predicted_step_time(run, Seconds{0.25e-3});
      runs.push_back(run);
    }
    CHECK(fitted_action_overhead(runs).count() == doctest::Approx(0.25e-3).epsilon(1e-6));
    for (const double error : step_time_errors(runs, Seconds{0.25e-3})) CHECK(error == doctest::Approx(0));
  }

  TEST_CASE("one run among three that is far off does not move the fitted overhead") {
    // The mean of absolute errors is least at the middle one of three.
    std::vector<MeasuredRun> runs(3, run_of(small_run_row()));
    runs[0].measured_step = Seconds{35.2e-3};
    runs[1].measured_step = Seconds{37.4e-3};
    runs[2].measured_step = Seconds{1};
    CHECK(fitted_action_overhead(runs).count() == doctest::Approx(0.2e-3).epsilon(1e-6));
    runs[0].measured_step = runs[1].measured_step = Seconds{30e-3};
    CHECK(fitted_action_overhead(runs) == Seconds{0});
  }

  TEST_CASE("rows that cannot be run say why") {
    json row = small_run_row();
    row["schedule"] = "ZB-V";
    CHECK(reason_of(row) == "its schedule \"ZB-V\" is not known here");
    row = small_run_row();
    row.erase("profiled_ms");
    CHECK(reason_of(row) == "its operations were not timed");
    row = small_run_row();
    row["measured"].erase("step_time_ms");
    CHECK(reason_of(row) == "its step was not measured");
    row = small_run_row();
    row["measured"]["extra_us_per_rank"] = {{0, 0, 0, 0}, {0, 1, 0, 0}};
    CHECK(reason_of(row) == "its ranks also work outside the actions of the schedule");
    row = small_run_row();
    row["profiled_ms"]["TW"] = "fast";
    CHECK(refusal_of(row) == "rows[0].TW: \"fast\" is not a number of 0 or more");
    row = small_run_row();
    row["pp"] = 0;
    CHECK(refusal_of(row) == "rows[0].pp: 0 is not a whole number of 1 or more");
  }
}

TEST_SUITE("oracle") {
  TEST_CASE("published steps of 1F1B follow from their measured op times within 2 %") {
    const std::vector<MeasuredRun> runs = published_runs("vocab_parallel_one_host.json");
    if (runs.empty()) return;
    REQUIRE(runs.size() == 8);
    CHECK(print_errors("vocab_parallel_one_host, no constant", runs, Seconds{0}).worst <= 0.02);
  }

  TEST_CASE("published steps of zero-bubble schedules follow from their measured op times and one fitted constant") {
    const std::vector<MeasuredRun> runs = published_runs("zero_bubble_iclr24.json");
    if (runs.empty()) return;
    REQUIRE(runs.size() == 24);
    print_errors("zero_bubble_iclr24, no constant", runs, Seconds{0});
    for (const std::size_t fitted : {0U, 1U}) {
      const Seconds overhead = fitted_action_overhead(every_second(runs, fitted));
      const std::string title = fmt::format("zero_bubble_iclr24, {} rows, {:.1f} us an action, fitted on the others",
                                            fitted == 0 ? "odd" : "even", overhead.count() * 1e6);
      const ErrorSize judged = print_errors(title, every_second(runs, 1 - fitted), overhead);
      CHECK(judged.mean <= 0.025);
      CHECK(judged.worst <= 0.05);
    }
  }
}
}  // namespace plumb::test
