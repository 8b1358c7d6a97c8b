#include <doctest/doctest.h>

#include "tests/traces/support.h"
#include "traces/draw/time_text.h"
#include "traces/draw/timeline_rows.h"
#include "traces/statistics.h"

namespace plumb::test {
namespace {

Span span(int start, int end, Op op = Op::kForward) {
  return {.start = SimTime{start}, .end = SimTime{end}, .action = {.op = op}, .stream = stream_of(op)};
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("busy is the time in which compute runs: what overlaps counts once, messages do not count") {
    Timeline timeline;
    timeline.ranks.push_back({.spans = {span(10, 20), span(15, 30, Op::kBackward), span(12, 18), span(40, 50),
                                        span(50, 90, Op::kSendActivation)}});
    timeline.ranks.push_back({.spans = {span(20, 30)}, .memory = {{SimTime{0}, 5}, {SimTime{7}, 9}, {SimTime{8}, 1}}});
    const Statistics statistics = statistics_of(timeline);
    CHECK(statistics.makespan == SimTime{80});  // from 10 to 90
    CHECK(statistics.ranks[0].busy == SimTime{30});
    CHECK(statistics.ranks[0].idle == SimTime{50});
    CHECK(statistics.ranks[0].first_start == SimTime{10});
    CHECK(statistics.ranks[0].last_end == SimTime{50});
    CHECK(statistics.ranks[1].peak_memory_bytes == 9);
    CHECK(statistics.bubble_ratio == doctest::Approx(1 - 40.0 / 160));
    CHECK(statistics.span_bubble_ratio == doctest::Approx(1 - 30.0 / 40));
    CHECK(statistics.ops[static_cast<std::size_t>(Op::kForward)].count == 4);
    CHECK(statistics.ops[static_cast<std::size_t>(Op::kForward)].total.count() == doctest::Approx(36e-12));
  }

  TEST_CASE("a timeline without spans has no time and no bubble") {
    const Statistics statistics = statistics_of({});
    CHECK(statistics.makespan == SimTime{0});
    CHECK(statistics.bubble_ratio == 0);
  }

  TEST_CASE("spans that overlap on one stream lie on rows of their own, the first that is free") {
    const RankTimeline rank{.spans = {span(0, 4, Op::kSendActivation), span(1, 3, Op::kSendActivation),
                                      span(2, 2, Op::kSendActivation), span(0, 9), span(3, 5, Op::kSendActivation)}};
    const RankRows rows = rows_of(rank);
    CHECK(rows.rows.size() == 4);
    CHECK(rows.row == std::vector<std::int32_t>{1, 2, 3, 0, 2});  // what lasts nothing would be drawn inside another
    CHECK(rows.rows[0].stream == Stream::kCompute);
    CHECK(rows.rows[2].number == 1);
  }

  TEST_CASE("times are printed in the unit that suits them") {
    CHECK(time_text(33 * kSecond) == "33 s");
    CHECK(time_text(SimTime{213'124'000'000'000}) == "213.12 s");
    CHECK(time_text(SimTime{1'500'000'000}) == "1.5 ms");
    CHECK(time_text(SimTime{-2'000'000}) == "-2 us");
    CHECK(time_text(SimTime{740}) == "740 ps");
    CHECK(time_text(SimTime{0}) == "0 s");
    CHECK(time_text(123'456 * kSecond) == "123456 s");
  }
}

}  // namespace plumb::test
