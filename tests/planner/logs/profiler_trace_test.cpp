#include "planner/logs/profiler_trace.h"

#include <sstream>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

std::string event(const char* category, const char* name, double start, double duration, const char* group = nullptr) {
  const std::string args = group ? fmt::format(R"({{"Process Group Description": "{}"}})", group) : "{}";
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "ts": {}, "dur": {}, "args": {}}})", category, name,
                     start, duration, args);
}

ProfilerTrace read(const std::vector<std::string>& events) {
  std::istringstream stream(
      fmt::format(R"({{"schemaVersion": 1, "traceEvents": [{}], "displayTimeUnit": "ms"}})", fmt::join(events, ", ")));
  return read_profiler_trace(stream, "rank0.json");
}

double of(const ProfilerTrace& trace, ProfiledKind kind) {
  return 1e6 * trace.seconds[static_cast<std::size_t>(kind)];
}

}  // namespace

TEST_CASE("a step's time is divided among kinds of kernels, and exchanges count only where nothing computes") {
  const ProfilerTrace trace =
      read({event("user_annotation", "ProfilerStep#1", 1000, 90), event("user_annotation", "ProfilerStep#2", 1100, 100),
            event("kernel", "some_gemm", 1000, 40), event("kernel", "ncclDevKernel_AllReduce", 1030, 30, "mesh_dp"),
            event("kernel", "elementwise", 1035, 10),
            event("kernel", "flash_fwd", 1150, 100),  // its end is behind the last step's
            event("kernel", "some_gemm", 500, 100),   // before the first step
            event("cpu_op", "aten::mm", 1000, 10)});
  REQUIRE(trace.step_seconds.size() == 2);
  CHECK(trace.step_seconds[0] == doctest::Approx(100e-6));
  CHECK(of(trace, ProfiledKind::kGemm) == doctest::Approx(40.0 / 2));
  CHECK(of(trace, ProfiledKind::kMemoryBound) == doctest::Approx(5.0 / 2));
  CHECK(of(trace, ProfiledKind::kDataParallel) == doctest::Approx(15.0 / 2));
  CHECK(of(trace, ProfiledKind::kAttention) == doctest::Approx(50.0 / 2));
  CHECK(1e6 * trace.idle_seconds == doctest::Approx((200 - 40 - 5 - 15 - 50) / 2.0));
}

TEST_CASE("the actions of a pipeline schedule are added up by operation") {
  const ProfilerTrace trace =
      read({event("user_annotation", "ProfilerStep#1", 0, 100), event("kernel", "some_gemm", 0, 1),
            event("gpu_user_annotation", "PP:0F0", 10, 10), event("gpu_user_annotation", "PP:0F1", 20, 12),
            event("gpu_user_annotation", "PP:0B0", 40, 30), event("gpu_user_annotation", "PP:something else", 40, 30)});
  REQUIRE(trace.op_seconds.size() == 2);
  CHECK(trace.op_seconds.at(Op::kForward) == doctest::Approx(22e-6));
  CHECK(trace.op_seconds.at(Op::kBackward) == doctest::Approx(30e-6));
}

TEST_CASE("what is no whole profile is refused in a sentence") {
  const auto refused = [](const std::string& text) {
    std::istringstream stream(text);
    CHECK_THROWS_AS(read_profiler_trace(stream, "rank0.json"), InputError);
  };
  refused(R"({"traceEvents": [{"ph": "X", "cat": "ker)");
  refused("\x1f\x8b...");
  refused(R"({"traceEvents": []})");
  refused(fmt::format(R"({{"traceEvents": [{}]}})", event("user_annotation", "ProfilerStep#1", 0, 1)));
  refused(R"([{"ph": "X", "cat": "kernel", "name": "gemm", "ts": "soon", "dur": 1}])");
  CHECK(is_json_begin(" \n{"));
  CHECK_FALSE(is_json_begin("step: 1"));
}

TEST_CASE("a line of a log may begin as a list does, and a trace begins with objects") {
  CHECK(is_json_begin(R"( {"schemaVersion": 1)"));
  CHECK(is_json_begin("[\n  {"));
  CHECK(is_json_begin("[]"));
  CHECK_FALSE(is_json_begin("[2026-01-01 00:00:00] iteration 1/ 10"));
  CHECK_FALSE(is_json_begin("[NeMo I 2026-01-01 nemo_logging:393] Experiments will be logged"));
  CHECK_FALSE(is_json_begin("{rank 0} started"));
  CHECK_FALSE(is_json_begin("iteration"));
  CHECK_FALSE(is_json_begin(""));
}

TEST_CASE("kernels count once in whatever order they come, and without a length not at all") {
  const auto trace = [](std::vector<std::string> events) {
    events.push_back(event("user_annotation", "ProfilerStep#1", 0, 100));
    return read(events);
  };
  const std::string early = event("kernel", "some_gemm", 10, 30), late = event("kernel", "elementwise", 20, 50),
                    within = event("kernel", "some_gemm", 15, 5), none = event("kernel", "flash_fwd", 80, 0);
  for (const ProfilerTrace& of_order : {trace({early, late, within, none}), trace({late, within, none, early})}) {
    CHECK(of(of_order, ProfiledKind::kGemm) == doctest::Approx(30));
    CHECK(of(of_order, ProfiledKind::kMemoryBound) == doctest::Approx(30));
    CHECK(of(of_order, ProfiledKind::kAttention) == 0);
    CHECK(1e6 * of_order.idle_seconds == doctest::Approx(40));
  }
}

}  // namespace plumb::test
