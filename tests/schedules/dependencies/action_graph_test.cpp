#include "schedules/dependencies/action_graph.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/passes/lower.h"

namespace plumb::test {
namespace {

/// Returns "0F0 -> 1F0" for each dependency of that reason.
std::vector<std::string> edges(const Schedule& schedule, Reason reason, Sends sends = Sends::kBuffered) {
  const ActionIds ids = action_ids(schedule);
  const auto name = [&](std::int32_t id) {
    const auto [rank, position] = place_of(ids, id);
    return to_text(schedule.ranks[rank][position]);
  };
  std::vector<std::string> result;
  for (const Dependency& d : dependencies(schedule, sends)) {
    if (d.reason == reason) result.push_back(name(d.from) + " -> " + name(d.to));
  }
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("ids count the actions rank by rank") {
  const ActionIds ids = action_ids(parse_schedule("0F0 0B0\n1F0 1B0"));
  CHECK(ids.first_id == std::vector<std::int32_t>{0, 2, 4});
  CHECK(place_of(ids, 3).rank == 1);
  CHECK(place_of(ids, 3).position == 1);
}

TEST_CASE("inputs come from the neighbouring stage: over the rank where there is one, by message where lowered") {
  const Schedule order = parse_schedule("0F0 0I0 0W0\n1F0 1B0");
  CHECK(edges(order, Reason::kMessage) == Names{"1B0 -> 0I0", "0F0 -> 1F0"});
  CHECK(edges(order, Reason::kData) == Names{"0F0 -> 0I0", "0I0 -> 0W0", "1F0 -> 1B0"});
  CHECK(edges(lower(order), Reason::kMessage) == Names{"1SEND_B0 -> 0I0", "0SEND_F0 -> 1F0"});
}

TEST_CASE("under rendezvous a send waits for its receive to be issued") {
  const Schedule lowered = lower(parse_schedule("0F0\n1F0"));
  CHECK(edges(lowered, Reason::kRendezvous).empty());
  CHECK(edges(lowered, Reason::kRendezvous, Sends::kRendezvous) == Names{"1RECV_F0 -> 0SEND_F0"});
}

TEST_CASE("transfers of one channel follow each other, those of another do not") {
  const Schedule lowered = lower(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"));
  CHECK(edges(lowered, Reason::kChannel) == Names{"0SEND_F0 -> 0SEND_F1", "1SEND_B0 -> 1SEND_B1"});
}

TEST_CASE("slices run forth in the forward and back in the backward") {
  const Schedule schedule = parse_schedule("0F0 0F0/1 0B0/1 0B0");
  CHECK(edges(schedule, Reason::kData) == Names{"0F0 -> 0F0/1", "0F0/1 -> 0B0/1", "0F0 -> 0B0", "0B0/1 -> 0B0"});
}

TEST_CASE("collectives keep their order, steps wait for reductions, use waits for gathering") {
  const Schedule lowered = lower(parse_schedule("0F0 0B0"), {.data = {.enabled = true, .zero = 3}});
  CHECK(edges(lowered, Reason::kParameters) == Names{"0UNSHARD -> 0F0", "0UNSHARD -> 0B0"});
  CHECK(edges(lowered, Reason::kReduction) == Names{"0REDUCE_GRAD -> 0OPTIMIZER_STEP"});
  CHECK(edges(lowered, Reason::kChannel) == Names{"0UNSHARD -> 0UNSHARD"});
}

TEST_CASE("a recompute needs its forward, the backward needs the recompute") {
  CHECK(edges(parse_schedule("0F0 0R0 0B0"), Reason::kData) == Names{"0F0 -> 0R0", "0F0 -> 0B0", "0R0 -> 0B0"});
}

TEST_CASE("a pair waits for the inputs of both and is waited for as one") {
  const Schedule schedule = parse_schedule("0F0 0F1&0B0 0B1\n1F0 1B0 1F1 1B1");
  // 1B0 feeds the pair's second action, and the pair's first makes 0F1: both edges are those of the first.
  CHECK(edges(schedule, Reason::kMessage) == Names{"1B0 -> 0F1", "1B1 -> 0B1", "0F0 -> 1F0", "0F1 -> 1F1"});
}

TEST_CASE("a cycle is found and told action by action") {
  const Schedule schedule = parse_schedule("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::vector<std::int32_t> cycle = find_cycle(action_graph(schedule));
  CHECK(cycle.size() == 4);
  CHECK(find_cycle(action_graph(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1"))).empty());
  CHECK(describe_cycle(schedule, {}).empty());
}

TEST_CASE("activations come back behind their leaving, and backwards wait for that") {
  const Schedule schedule =
      parse_schedule("0F0 0OFFLOAD0 0F1 0EVICT1 0RELOAD0 0I0 0W0 0LOAD1 0R1 0B1\n1F0 1B0 1F1 1B1");
  CHECK(edges(schedule, Reason::kMoved) == Names{"0OFFLOAD0 -> 0RELOAD0", "0RELOAD0 -> 0I0", "0RELOAD0 -> 0W0",
                                                 "0EVICT1 -> 0LOAD1", "0LOAD1 -> 0R1", "0LOAD1 -> 0B1"});
}

TEST_CASE("a long cycle keeps its ends") {
  const Schedule schedule = parse_schedule("0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0F8 0F9 0F10 0F11 0F12 0F13 0F14");
  std::vector<std::int32_t> all;
  for (std::int32_t id = 0; id < 15; ++id) all.push_back(id);
  const std::string text = describe_cycle(schedule, all);
  CHECK(text.find("(3 actions)") != std::string::npos);
  CHECK(text.starts_with("rank 0: 0F0 (position 0) waits for rank 0: 0F14 (position 14), which waits for"));
  CHECK(text.ends_with("waits for rank 0: 0F0 (position 0)"));
}

}  // namespace plumb::test
