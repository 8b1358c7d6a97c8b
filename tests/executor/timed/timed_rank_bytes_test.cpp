#include "executor/timed/timed_rank_bytes.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

TimedRank sample_rank() {
  TimedRank rank{.timelines = {{}, {}}, .ends = {SimTime{7}, SimTime{9}}};
  rank.timelines[0].spans = {{.start = SimTime{1}, .end = SimTime{3}, .action = {.stage = 2, .microbatch = 5}}};
  rank.timelines[0].memory = {{SimTime{0}, 100}, {SimTime{3}, 50}};
  rank.timelines[1].memory_by_kind[1] = {{SimTime{4}, 8}};
  return rank;
}

}  // namespace

TEST_CASE("a rank's replay comes back from its bytes") {
  const TimedRank rank = sample_rank();
  const TimedRank back = timed_rank_from_bytes(to_bytes(rank));
  CHECK(back.ends == rank.ends);
  CHECK(back.timelines == rank.timelines);
}

TEST_CASE("bytes that were cut short or run on are refused, wherever") {
  const std::string bytes = to_bytes(sample_rank());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(timed_rank_from_bytes(std::string_view(bytes).substr(0, size)), RunError);
  CHECK_THROWS_AS(timed_rank_from_bytes(bytes + "x"), RunError);
}

}  // namespace plumb::test
