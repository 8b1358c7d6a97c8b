#include "tools/reports/own_runs.h"

#include <cstdio>
#include <fstream>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

const std::string kRun =
    R"({"title": "1 Gbit/s, 1f1b", "date": "2026-11-22", "load": "load 1.0 on 2 cores", "steps": 9,
        "step_time": {"predicted_s": 0.99, "measured_s": 1.0, "error_ratio": -0.01},
        "step_time_interval": {"low_s": 0.9, "high_s": 1.1, "confidence_ratio": 0.96},
        "fastest_step_s": 0.8, "slowest_step_s": 1.2, "ops": []})";

std::vector<OwnRun> read(const std::string& text) {
  const std::string path = "own_runs_test.json";
  std::ofstream(path) << text;
  try {
    std::vector<OwnRun> runs = read_own_runs(path);
    std::remove(path.c_str());
    return runs;
  } catch (...) {
    std::remove(path.c_str());
    throw;
  }
}

}  // namespace

TEST_CASE("an answer of validate is a row with its error and spread; an array of them as many") {
  const std::vector<OwnRun> one = read(kRun), two = read("[" + kRun + "," + kRun + "]");
  REQUIRE(one.size() == 1);
  CHECK(two.size() == 2);
  const std::string page = own_runs_page(one);
  CHECK(page.find(
            "| 1 Gbit/s, 1f1b | 990.0 | 1000.0 | 9 | -1.00 | -10.00 to +10.00 (96 %) | 800.0, 1200.0 | 2026-11-22 | "
            "load 1.0 on 2 cores |") != std::string::npos);
  CHECK(own_runs_page({}).empty());
}

TEST_CASE("a file that is no such answer is refused with the place") {
  CHECK_THROWS_WITH_AS(read("3"), "own_runs_test.json: this is no answer of `plumb validate --json`", InputError);
  std::string without = kRun;
  without.replace(without.find("\"date\""), 6, "\"dote\"");
  CHECK_THROWS_WITH_AS(read("[" + kRun + "," + without + "]"),
                       "own_runs_test.json: [1]: date is not there: write the file by `plumb validate --json`",
                       InputError);
  std::string nothing = kRun;
  nothing.replace(nothing.find("0.99"), 4, "0");
  CHECK_THROWS_AS(read(nothing), InputError);
}

}  // namespace plumb::test
