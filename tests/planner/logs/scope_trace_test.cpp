#include "planner/logs/scope_trace.h"

#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

std::string scope(const char* name, const char* phase, int nanoseconds) {
  return fmt::format(R"({{"name": "{}", "ph": "{}", "rel_ts": {}, "dp_rk": 0, "pp_rk": 1, "tp_rk": 0}})", name, phase,
                     nanoseconds);
}

const std::string kStepBegin = R"({"name": "iteration", "ph": "B", "pad_before": null, "iteration": 1})";

std::string step_end(int nanoseconds) {
  return fmt::format(R"({{"name": "iteration", "ph": "E", "rel_ts": 5, "duration_wall": {}}})", nanoseconds);
}

ScopeTrace scopes_of(const std::vector<std::string>& records) {
  std::istringstream stream(fmt::format("[{}]", fmt::join(records, ", ")));
  return read_scope_trace(stream, "rank.json");
}

}  // namespace

TEST_CASE("scopes that span operations are added up by step, and the first step is left out") {
  const ScopeTrace trace = scopes_of({kStepBegin,
                                      scope("forward-step", "B", 0),
                                      scope("forward-step", "E", 900),
                                      step_end(9000),
                                      scope("forward-step", "B", 0),
                                      scope("forward-step", "E", 800),  // an evaluation
                                      kStepBegin,
                                      scope("forward", "B", 0),
                                      scope("forward-step", "B", 100),
                                      scope("loss", "B", 110),
                                      scope("loss", "E", 120),
                                      scope("forward-step", "E", 300),
                                      scope("forward-step", "B", 400),
                                      scope("forward-step", "E", 450),
                                      scope("forward", "E", 500),
                                      scope("backward-step", "B", 500),
                                      scope("backward-step", "E", 1000),
                                      R"({"name": "gemm", "record_type": "cuda_kernel"})",
                                      step_end(2000),
                                      kStepBegin,
                                      scope("optimizer", "B", 0),
                                      scope("optimizer", "B", 10),
                                      scope("optimizer", "E", 20),
                                      scope("optimizer", "E", 100),
                                      step_end(3000)});
  REQUIRE(trace.step_seconds.size() == 2);
  CHECK(trace.step_seconds[0] == doctest::Approx(2000e-9));
  REQUIRE(trace.scope_seconds.size() == 3);
  CHECK(trace.scope_seconds.at("forward-step") == doctest::Approx(250e-9 / 2));
  CHECK(trace.scope_seconds.at("backward-step") == doctest::Approx(500e-9 / 2));
  CHECK(trace.scope_seconds.at("optimizer") == doctest::Approx(100e-9 / 2));
}

TEST_CASE("the only step of a trace counts") {
  CHECK(scopes_of({kStepBegin, step_end(7000)}).step_seconds.size() == 1);
}

TEST_CASE("such a file is told from a profile of PyTorch's by its first record") {
  CHECK(is_scope_trace_begin(" [\n  " + kStepBegin));
  CHECK(is_scope_trace_begin("[" + scope("forward-step", "B", 3)));
  CHECK_FALSE(is_scope_trace_begin(R"([{"ph": "X", "name": "gemm", "ts": 1}, {"rel_ts": 2}])"));
  CHECK_FALSE(is_scope_trace_begin(R"({"pad_before": 1})"));
}

TEST_CASE("what is no whole timeline is refused in a sentence") {
  const auto refused = [](const std::vector<std::string>& records, const char* what) {
    check_refused<InputError>([&] { scopes_of(records); }, "rank.json", what);
  };
  refused({}, "no step");
  refused({kStepBegin}, "ends inside a step");
  refused({kStepBegin, kStepBegin}, "begins inside another");
  refused({step_end(1)}, "without a begin");
  refused({kStepBegin, scope("forward-step", "E", 1)}, "without a begin");
  refused({kStepBegin, scope("forward-step", "B", 1), step_end(3)}, "no end");
  refused({kStepBegin, R"({"name": "forward-step", "ph": "B"})"}, "rel_ts");
  refused({kStepBegin, R"({"name": "iteration", "ph": "E"})"}, "duration_wall");
  std::istringstream cut("[" + kStepBegin + ", ");
  check_refused<InputError>([&] { read_scope_trace(cut, "rank.json"); }, "rank.json", "cut short");
}

}  // namespace plumb::test
