#include "planner/score/timed_score.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/score/source_mapping.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// Returns a 1F1B row on two ranks, which lasts (m + 1) (F + I + W); `slower` is the measured time beyond that.
json timed_row(int microbatches, double slower) {
  return {{"id", std::to_string(microbatches)},
          {"source", {{"repo", "who/ever"}}},
          {"pp", 2},
          {"n_microbatches", microbatches},
          {"schedule", "1F1B"},
          {"profiled_ms", {{"TF", 10}, {"TB", 10}, {"TW", 10}, {"Tcomm", 0}}},
          {"measured", {{"step_time_ms", 30 * (microbatches + 1) * slower}}}};
}

}  // namespace

TEST_CASE("one overhead of an action is fitted on a half and judged on the other") {
  const std::vector<TimedScore> scores =
      timed_scores({}, {{"rows.json", {timed_row(2, 1.1), timed_row(4, 1.2), timed_row(8, 1.1), timed_row(16, 1.2)}}});
  REQUIRE(scores.size() == 1);
  CHECK(scores[0].unfitted.count == 4);
  CHECK(scores[0].unfitted.worst_pct == doctest::Approx(100 * (1 - 1 / 1.2)));
  // Each micro-batch has two actions: 3 ms besides 30 is 1.5 an action, 6 is 3.
  CHECK(scores[0].halves[0].overhead.count() == doctest::Approx(1.5e-3));
  CHECK(scores[0].halves[1].overhead.count() == doctest::Approx(3e-3));
  CHECK(scores[0].halves[0].unseen.mean_pct == doctest::Approx(100 * (1 - 1.1 / 1.2)));
  CHECK(scores[0].halves[1].unseen.mean_pct == doctest::Approx(100 * (1.2 / 1.1 - 1)));
  CHECK(to_json(scores)[0]["halves"][0]["overhead_us"].get<double>() == doctest::Approx(1500));
}

TEST_CASE("files with fewer than four timed runs are left out, and faulty rows do not count") {
  json broken = timed_row(4, 1);
  broken["profiled_ms"]["TF"] = "fast";
  CHECK(timed_scores({},
                     {{"few.json", {timed_row(2, 1), timed_row(4, 1), timed_row(8, 1), broken, {{"id", "no times"}}}}})
            .empty());
}

TEST_CASE("a source's mapping says how many chunks its interleaved runs have") {
  const SourceMapping mapping = parse_source_mapping(
      R"({"name": "m", "cites": ["who/ever"], "clusters": [], "rules": [{"where": {"schedule": "1F1B-I"},
          "fill": {"timed_chunks": 2}, "because": "the paper says so"}]})",
      "m.json");
  std::vector<json> rows;
  for (const int microbatches : {2, 4, 6, 8}) {
    rows.push_back(timed_row(microbatches, 1));
    rows.back()["schedule"] = "1F1B-I";
    rows.back()["measured"]["step_time_ms"] = 30 * microbatches + 30 / 2;  // m (F + B) + (p - 1) (F + B) / v
  }
  const std::vector<TimedScore> scores = timed_scores({mapping}, {{"rows.json", rows}});
  REQUIRE(scores.size() == 1);
  CHECK(scores[0].unfitted.worst_pct == doctest::Approx(0).epsilon(1e-9));
}

}  // namespace plumb::test
