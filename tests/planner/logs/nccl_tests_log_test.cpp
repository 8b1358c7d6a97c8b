#include "planner/logs/nccl_tests_log.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/logs/log_text.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// Returns the text with `from` replaced by `to` once.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("sizes, times and the group are read from an nccl-tests log") {
  const NcclTestsLog log =
      parse_nccl_tests_log(nccl_tests_text("all_reduce", 16, 2, {{1024, 20.5}, {2048, 21}}), "a.log");
  CHECK(log.kind == CollectiveKind::kAllReduce);
  CHECK(log.group == GroupPlacement{.ranks = 16, .nodes = 2, .ranks_per_node = 8});
  REQUIRE(log.sizes.size() == 2);
  CHECK(log.sizes[0].bytes == 1024);
  CHECK(log.sizes[0].out_of_place.count() == doctest::Approx(20.5e-6));
  CHECK(log.sizes[1].in_place.count() == doctest::Approx(21e-6));
}

TEST_CASE("each program's log is its collective") {
  const auto kind = [](const char* program) {
    return parse_nccl_tests_log(nccl_tests_text(program, 8, 1, {{64, 9}}), "x.log").kind;
  };
  CHECK(kind("all_gather") == CollectiveKind::kAllGather);
  CHECK(kind("reduce_scatter") == CollectiveKind::kReduceScatter);
  CHECK(kind("alltoall") == CollectiveKind::kAllToAll);
  CHECK(kind("broadcast") == CollectiveKind::kBroadcast);
  CHECK_FALSE(kind("sendrecv"));
  const std::string unnamed = with(nccl_tests_text("reduce_scatter", 8, 1, {{64, 9}}), "reduce_scatter_perf", "?");
  CHECK(parse_nccl_tests_log(unnamed, "runs/reduce_scatter_perf.log").kind == CollectiveKind::kReduceScatter);
}

TEST_CASE("launchers' prefixes, NCCL's own lines, missing checks and Windows line ends do not matter") {
  const std::string plain = nccl_tests_text("all_reduce", 2, 1, {{1024, 20}});
  std::string noisy = "node-0:1:2 [0] NCCL INFO 1024 Bytes -> Algo 1 proto 2 time 8.0\n";
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = plain.find('\n', at);
    noisy += "[1,0]<stdout>:" + plain.substr(at, end - at) + "\r\n";
    at = end + 1;
  }
  const NcclTestsLog log = parse_nccl_tests_log(with(noisy, "1.75      0", "1.75    N/A"), "a.log");
  CHECK(log.sizes.size() == 1);
  CHECK(log.group.ranks == 2);
}

TEST_CASE("a size that is printed more than once has the median of its times, and 0 bytes have none") {
  const NcclTestsLog log = parse_nccl_tests_log(
      nccl_tests_text("all_gather", 2, 1, {{0, 5}, {64, 30}, {64, 10}, {64, 11}, {32, 8}}), "a.log");
  REQUIRE(log.sizes.size() == 2);
  CHECK(log.sizes[0].bytes == 32);
  CHECK(log.sizes[1].out_of_place.count() == doctest::Approx(11e-6));
}

TEST_CASE("a log that was cut names the line") {
  const std::string whole = nccl_tests_text("all_reduce", 2, 1, {{1024, 20}, {2048, 21}});
  const std::size_t last = whole.find("2048");
  check_refused<SpecError>([&] { parse_nccl_tests_log(whole.substr(0, last + 40), "a.log"); }, "a.log:9", "cut");
  check_refused<SpecError>([&] { parse_nccl_tests_log(whole.substr(0, whole.find("# Out of")), "a.log"); }, "a.log:9",
                           "Avg bus bandwidth");
  check_refused<SpecError>([&] { parse_nccl_tests_log("", "all_reduce_perf.log"); }, "all_reduce_perf.log:1", "cut");
}

TEST_CASE("a log that cannot be used is refused with line and remedy") {
  const std::string good = nccl_tests_text("all_reduce", 4, 2, {{1024, 20}});
  const auto refused = [&](const std::string& from, const std::string& to, const char* place, const char* part) {
    CAPTURE(from);
    check_refused<SpecError>([&] { parse_nccl_tests_log(with(good, from, to), "a.log"); }, place, part);
  };
  refused("1.75      0", "1.75      3", "a.log:10", "wrong");
  refused("     20 ", "      0 ", "a.log:10", "measure them again");
  refused("     20 ", "     xx ", "a.log:10", "no times");
  refused("all_reduce_perf", "my_perf", "a.log:1", "which test");
  refused("node-1", "node-0", "a.log:1", "same number on each node");
  check_refused<SpecError>(
      [] {
        parse_nccl_tests_log(nccl_tests_text("all_reduce", 1, 1, {{1024, 20}}), "a.log");
      },
      "a.log:1", "one rank");
  check_refused<SpecError>(
      [] {
        parse_nccl_tests_log(nccl_tests_text("all_reduce", 0, 1, {{1024, 20}}), "a.log");
      },
      "a.log:1", "header");
  check_refused<SpecError>([] { parse_nccl_tests_log(nccl_tests_text("all_reduce", 2, 1, {}), "a.log"); }, "a.log",
                           "no row");
}

TEST_CASE("logs of other versions: the largest difference, times out of place only, a line cut in the middle") {
  const std::string head = "# all_reduce_perf\n#  Rank  0 Pid 1 on h device 0\n#  Rank  1 Pid 2 on h device 1\n";
  const std::string tail = "# Avg bus bandwidth : 9\n";
  const auto parsed = [&](const std::string& body) { return parse_nccl_tests_log(head + body + tail, "a.log"); };
  const std::string old =
      "# out-of-place in-place\n# size count type redop time algbw busbw error time algbw busbw error\n";
  CHECK(parsed(old + " 1024 256 float sum 20.0 1 1 1e-06 21.0 1 1 0e+00\n").sizes.front().in_place.count() ==
        doctest::Approx(21e-6));
  check_refused<SpecError>([&] { parsed(old + " 1024 256 float sum 20.0 1 1 3e+01 21.0 1 1 0e+00\n"); }, "3e+01",
                           "again");
  const std::string one = "# out-of-place\n# size count type redop root time algbw busbw #wrong\n";
  const NcclTestsLog single = parsed(one + " 1024 256 float sum -1 20.0 1 1 N/A\n 1024 256 float sum -1 22.0 1 1 0\n");
  CHECK(single.sizes.front().out_of_place.count() == doctest::Approx(21e-6));
  CHECK(single.sizes.front().in_place.count() == doctest::Approx(21e-6));
  const std::string both = "# out-of-place in-place\n# size count type redop root time algbw busbw #wrong\n";
  check_refused<SpecError>([&] { parsed(both + " 1024 256 float sum -1 20.0 58.4 102.2 0 21.0 59.0 103.3\n"); }, "cut",
                           "");
}

TEST_CASE("a log whose rows contradict the test that it is named after is refused") {
  const std::string gathers = with(nccl_tests_text("all_gather", 8, 1, {{1024, 20}}), "all_gather_perf", "?");
  check_refused<SpecError>([&] { parse_nccl_tests_log(gathers, "all_reduce.log"); }, "all_reduce.log", "which test");
  check_refused<SpecError>([&] { parse_nccl_tests_log(gathers, "all_reduce_perf.log"); }, "all_reduce_perf.log:14",
                           "redop is none");
  CHECK(parse_nccl_tests_log(gathers, "all_gather_perf.log").kind == CollectiveKind::kAllGather);
  const std::string reduces = with(nccl_tests_text("all_reduce", 8, 1, {{1024, 20}}), "all_reduce_perf", "?");
  check_refused<SpecError>([&] { parse_nccl_tests_log(reduces, "alltoall_perf.log"); }, "alltoall_perf.log:14",
                           "redop is sum");
}

TEST_CASE("a log of a test that is not priced is refused by its program's name, whatever the file is called") {
  const std::string reduce = nccl_tests_text("reduce", 8, 1, {{1024, 20}});
  check_refused<SpecError>([&] { parse_nccl_tests_log(reduce, "all_reduce_perf.log"); }, "all_reduce_perf.log:1",
                           "reduce_perf, which is not priced");
}

TEST_CASE("times out of place alone are told by the columns' names, with or without a title above them") {
  const std::string head = "# all_reduce_perf\n#  Rank  0 Pid 1 on h device 0\n#  Rank  1 Pid 2 on h device 1\n";
  const std::string columns = "# size count type redop root time algbw busbw #wrong\n";
  const std::string row = " 1024 256 float sum -1 20.0 1 1 0\n";
  const std::string tail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth : 9\n";
  for (const char* title : {"", "# out-of-place\n", "# out-of-place in-place\n"}) {
    CAPTURE(title);
    const NcclTestsLog log = parse_nccl_tests_log(head + title + columns + row + tail, "a.log");
    REQUIRE(log.sizes.size() == 1);
    CHECK(log.sizes.front().out_of_place.count() == doctest::Approx(20e-6));
  }
}

}  // namespace plumb::test
