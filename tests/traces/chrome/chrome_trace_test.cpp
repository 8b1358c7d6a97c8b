#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "tests/traces/support.h"
#include "traces/chrome/chrome_trace.h"

namespace plumb::test {
using nlohmann::json;

namespace {

std::string error_of(std::string_view text) {
  try {
    read_chrome_trace(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Reads a trace as a viewer does, in doubles, and checks that on no thread a span begins before the one ahead of it
/// has ended, added up in microseconds or in nanoseconds that are cut off (Perfetto before 2025); that every time is of
/// whole nanoseconds; and that the samples of a counter are in order. Returns how many neighbours there are.
int neighbours_of(const std::string& text) {
  using Times = std::pair<double, double>;
  std::map<int, std::vector<Times>> by_thread;
  std::map<std::pair<int, std::string>, double> last_sample;
  const auto is_whole = [](double us) { return std::abs(us * 1e3 - std::round(us * 1e3)) <= std::abs(us) * 1e-12; };
  const json trace = json::parse(text);
  for (const json& event : trace["traceEvents"]) {
    if (event.contains("ts")) REQUIRE(is_whole(event["ts"].get<double>()));
    if (event["ph"] == "C") {
      double& last = last_sample[{event["pid"].get<int>(), event["name"].get<std::string>()}];
      REQUIRE(event["ts"].get<double>() >= last);
      last = event["ts"];
    }
    if (event["ph"] != "X") continue;
    REQUIRE(event["dur"].get<double>() >= 0);
    REQUIRE(is_whole(event["dur"].get<double>()));
    by_thread[event["tid"]].push_back({event["ts"], event["dur"]});
  }
  int neighbours = 0;
  for (auto& [thread, spans] : by_thread) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i, ++neighbours) {
      const auto [start, duration] = spans[i - 1];
      const double next = spans[i].first;
      REQUIRE(start + duration <= next);
      REQUIRE(std::trunc(start * 1e3) + std::trunc(duration * 1e3) <= std::trunc(next * 1e3));
    }
  }
  return neighbours;
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("a trace is JSON that names ranks by their layers and spans by what the model does") {
    Timeline timeline = predicted_timeline("1f1b", 2, 2, 1, 0.5);
    timeline.stage_names = {"layers 0-7", "layers 8-15 \"head\"\n"};  // a name is escaped
    const json trace = json::parse(write_chrome_trace(timeline));
    CHECK(trace["otherData"]["title"] == "1f1b p=2 m=2");
    CHECK(trace["otherData"]["source"] == "predicted");
    std::set<std::string> names;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "X") names.insert(event["name"]);
      if (event["ph"] == "M" && event["name"] == "process_name") names.insert(event["args"]["name"]);
      if (event["ph"] == "M" && event["name"] == "thread_name") names.insert(event["args"]["name"]);
    }
    for (const char* name : {"rank 0: layers 0-7", "rank 1: layers 8-15 \"head\"\n", "F mb 0, layers 0-7", "compute",
                             "send", "receive", "SEND_F mb 1, layers 0-7", "OPTIMIZER_STEP, layers 0-7"}) {
      CHECK_MESSAGE(names.count(name) == 1, name);
    }
  }

  TEST_CASE(
      "a trace is handed over in pieces of bounded size that are the whole of it, also with names that are longer") {
    for (const std::size_t longest_name : {std::size_t{0}, 3 * kTracePiece}) {
      // A name stands in the events of its stage: there are few where it is long.
      Timeline timeline = predicted_timeline("1f1b", 4, longest_name > 0 ? 2 : 256, 1, 0.1);
      if (longest_name > 0) timeline.stage_names = {"first", std::string(longest_name, 'x'), "third", "last"};
      std::vector<std::size_t> sizes;
      std::string whole;
      const TextSink take = [&](std::string_view piece) {
        sizes.push_back(piece.size());
        whole += piece;
      };
      write_chrome_trace(timeline, take);
      CHECK(sizes.size() > 5);
      CHECK(std::ranges::max(sizes) <= kTracePiece);
      CHECK(std::ranges::min(sizes) > 0);
      CHECK(whole == write_chrome_trace(timeline));
      CHECK(read_chrome_trace(whole).timeline == timeline);
      sizes.clear();
      whole.clear();
      write_compared_trace(timeline, timeline, take);
      CHECK(std::ranges::max(sizes) <= kTracePiece);
      CHECK(whole == write_compared_trace(timeline, timeline));
      CHECK(json::accept(whole));
    }
  }

  TEST_CASE("times are microseconds of whole nanoseconds, and the picoseconds stand beside them") {
    Timeline timeline{.title = "t", .stages = {{}}};
    timeline.ranks.push_back({.spans = {{.start = SimTime{1'000'000},
                                         .end = SimTime{123'456'789'000'001},
                                         .action = {.op = Op::kForward, .microbatch = 0}}}});
    const std::string text = write_chrome_trace(timeline);
    CHECK(text.find("\"ts\":1,\"dur\":123456788,\"exact_ps\":[1000000,123456789000001],") != std::string::npos);
    CHECK(read_chrome_trace(text).timeline == timeline);
    for (const std::int64_t late : {std::int64_t{1} << 53, kLatestMoment.count() - 1'000'000}) {
      timeline.ranks[0].spans[0].end = SimTime{late};
      timeline.ranks[0].memory = {{.time = SimTime{late - 1}, .bytes = 1}};
      CHECK(read_chrome_trace(write_chrome_trace(timeline)).timeline == timeline);
    }
  }

  TEST_CASE("a time that no timeline holds, and exact times that are not those shown, are refused") {
    CHECK(error_of(R"([{"ph": "X", "ts": 0, "dur": 1e300, "name": "a"}])").find("1e+300 us") != std::string::npos);
    std::string text = write_chrome_trace(predicted_timeline("1f1b", 2, 2, 1, 0.123456789012));
    const std::size_t exact = text.find("\"exact_ps\":[");
    REQUIRE(exact != std::string::npos);
    CHECK(error_of(text.insert(exact + 12, "9")).find("event ") != std::string::npos);
  }

  TEST_CASE("spans of one thread never overlap, so that none is drawn inside another") {
    const Schedule schedule = lower(make_schedule("gpipe", {.ranks = 3, .microbatches = 6}));
    // A hop lasts longer than a forward: transfers are under way side by side.
    const Timeline timeline = simulate(schedule, chunk_cost_table(3, {.hop_latency = Seconds{2.5}})).timeline;
    CHECK(neighbours_of(write_chrome_trace(timeline)) > 6);
  }

  TEST_CASE("nothing on a thread overlaps to a reader of doubles, whatever picoseconds the times have") {
    int neighbours = 0;
    for (const double unit : {1e-9, 1e-6, 1e-3, 0.7, 1e3}) {
      for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
        const Schedule schedule = lower(make_schedule(name, {.ranks = 4, .microbatches = 12}));
        const CostTable costs = chunk_cost_table(4, {.forward = {Seconds{0.333333333333 * unit}},
                                                     .input_grad = {Seconds{0.777777777777 * unit}},
                                                     .weight_grad = {Seconds{0.123456789123 * unit}},
                                                     .hop_latency = Seconds{1.010101010101 * unit}});
        Timeline timeline = simulate(schedule, costs).timeline;
        neighbours += neighbours_of(write_chrome_trace(timeline));
        const Timeline predicted = timeline;
        timeline.source = Timeline::Source::kMeasured;
        neighbours += neighbours_of(write_chrome_trace(timeline));
        neighbours += neighbours_of(write_compared_trace(predicted, timeline));
      }
    }
    CHECK(neighbours > 10'000);
  }

  TEST_CASE("an arrow leads from each send that takes time to the delivery of its receive") {
    const Timeline timeline = predicted_timeline("1f1b", 2, 4, 1, 0.5);
    const json trace = json::parse(write_chrome_trace(timeline));
    std::map<int, std::pair<double, double>> arrows;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "s") arrows[event["id"]].first = event["ts"];
      if (event["ph"] == "f") arrows[event["id"]].second = event["ts"];
    }
    CHECK(!arrows.empty());
    // A nanosecond ahead of the delivery, half a second after the send started.
    for (const auto& [id, ends] : arrows)
      CHECK(ends.second - ends.first == doctest::Approx(0.5e6 - 1e-3).epsilon(1e-9));
  }

  TEST_CASE("memory is a counter, and one for each kind that is held; a counter that is not ours is refused") {
    const Timeline timeline = predicted_timeline("1f1b", 2, 2);
    std::string text = write_chrome_trace(timeline);
    std::set<std::string> counters;
    const json trace = json::parse(text);
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "C") counters.insert(event["name"]);
    }
    CHECK(counters == std::set<std::string>{"memory", "memory: activations"});
    const std::size_t name = text.find("memory: activations");
    CHECK(
        error_of(text.replace(name, 19, "memory: aktivations")).find("\"memory: aktivations\" is no counter of ours") !=
        std::string::npos);
  }

  TEST_CASE("a trace of ours reads back as the timeline it was written from") {
    for (const char* name : {"gpipe", "1f1b", "pipedream"}) {
      Timeline timeline = predicted_timeline(name, 4, 8, 1, 0.123456789012);
      CHECK(read_chrome_trace(write_chrome_trace(timeline)).timeline == timeline);
      timeline.source = Timeline::Source::kMeasured;
      CHECK(read_chrome_trace(write_chrome_trace(timeline)).timeline == timeline);
    }
    const Schedule pairs = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0&1F1 1B1\n"));
    const Timeline timeline = simulate(pairs, chunk_cost_table(2, {})).timeline;
    CHECK(read_chrome_trace(write_chrome_trace(timeline)).timeline == timeline);
    CHECK(read_chrome_trace(write_chrome_trace({})).timeline == Timeline{});
  }

  TEST_CASE("traces of other programs are read by process and thread, complete and begin/end events alike") {
    const ChromeTrace trace = read_chrome_trace(R"({"traceEvents": [
      {"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "GPU 0"}},
      {"ph": "X", "pid": 7, "tid": "stream 1", "ts": 1700000000000001.5, "dur": 2, "name": "gemm", "args": {"grid": [1, {"a": 2}]}},
      {"ph": "B", "pid": 7, "tid": 3, "ts": 1700000000000000.5, "name": "outer"},
      {"ph": "i", "pid": 7, "tid": 3, "ts": 1700000000000000.5, "name": "an instant"},
      {"ph": "E", "pid": 7, "tid": 3, "ts": 1700000000000010.5},
      {"ph": "E", "pid": 7, "tid": 3, "ts": 1700000000000010.5}
    ]})");
    CHECK(!trace.timeline);
    REQUIRE(trace.rows.size() == 2);
    CHECK(trace.rows[0] == ForeignRow{"GPU 0", "3", {{"outer", SimTime{0}, SimTime{10'000'000}}}});
    CHECK(trace.rows[1] == ForeignRow{"GPU 0", "stream 1", {{"gemm", SimTime{1'000'000}, SimTime{3'000'000}}}});

    const ChromeTrace array = read_chrome_trace(R"([{"ph": "X", "ts": 1, "dur": 2, "name": "a"}])");
    REQUIRE(array.rows.size() == 1);
    CHECK(array.rows[0].spans.size() == 1);
  }

  TEST_CASE("a trace cut short is refused with the place") {
    const std::string whole = write_chrome_trace(predicted_timeline("1f1b", 2, 2));
    for (std::size_t length = 0; length + 2 < whole.size(); length += 97) {
      CHECK(error_of(whole.substr(0, length)).starts_with("line "));
    }
    CHECK(error_of("{\"traceEvents\": [\n{\"ph\": \"X\"") ==
          "line 2, column 11: the JSON ends too early: close what is open, or fetch the whole file, or write the trace "
          "again");
    CHECK(
        error_of("{\"traceEvents\": [\n{\"ph\": \"X\", \"ts\": 1e999}]}").starts_with("line 2, column 19: 1e999 is "));
  }

  TEST_CASE("JSON that is no trace, and a trace of ours that was damaged, are refused") {
    CHECK(error_of("{\"plan\": 1}") == "the file holds JSON, but no trace: it has no traceEvents");
    CHECK(error_of("17") == "the file holds JSON, but no trace: it has no traceEvents");
    std::string text = write_chrome_trace(predicted_timeline("1f1b", 2, 2));
    const std::size_t stage = text.find("\"stage\":0");
    CHECK(error_of(std::string(text).replace(stage, 9, "\"stage\":9")).find("there is no stage 9") !=
          std::string::npos);
    const std::size_t op = text.find("\"op\":\"F\"");
    CHECK(error_of(std::string(text).replace(op, 8, "\"op\":\"Q\"")).starts_with("event "));
    const std::size_t pid = text.find("\"compute\",\"pid\":1");
    REQUIRE(pid != std::string::npos);
    CHECK(error_of(std::string(text).replace(pid, 17, "\"compute\",\"pid\":9")).starts_with("event "));
    const std::size_t stages = text.find("\"stages\":[[0,");
    REQUIRE(stages != std::string::npos);
    CHECK(error_of(std::string(text).replace(stages, 13, "\"stages\":[[8,")).find("there is no rank 8") !=
          std::string::npos);
    const std::size_t title = text.find("\"title\"");
    CHECK(error_of(std::string(text).replace(title, 7, "\"tilte\"")).starts_with("otherData: "));
  }

  TEST_CASE("prediction and measurement lie in one trace, rank below rank, with processes and threads of their own") {
    const Timeline timeline = predicted_timeline("1f1b", 2, 2);
    const json trace = json::parse(write_compared_trace(timeline, timeline));
    std::map<int, std::string> ranks;
    std::map<int, std::set<int>> processes_of_thread;
    std::map<int, int> ends_of_arrow;
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] == "process_name") ranks[event["pid"]] = event["args"]["name"];
      if (event["ph"] == "X") processes_of_thread[event["tid"]].insert(event["pid"].get<int>());
      if (event["name"] == "message") ++ends_of_arrow[event["id"]];
    }
    REQUIRE(ranks.size() == 4);
    CHECK(ranks[1].starts_with("rank 0 predicted"));
    CHECK(ranks[2].starts_with("rank 0 measured"));
    CHECK(ranks[3].starts_with("rank 1 predicted"));
    for (const auto& [thread, processes] : processes_of_thread) CHECK(processes.size() == 1);
    for (const auto& [arrow, ends] : ends_of_arrow) CHECK(ends == 2);
    const ChromeTrace read = read_chrome_trace(trace.dump());
    CHECK(!read.timeline);
    CHECK(!read.rows.empty());
  }
}

}  // namespace plumb::test
