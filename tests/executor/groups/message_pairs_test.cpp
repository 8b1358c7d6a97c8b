#include "executor/groups/message_pairs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {
namespace {

using Ticks = std::int64_t;
constexpr Ticks kAction = 100;  // F, I and W each

using Together = std::vector<std::array<std::int32_t, 2>>;  // ids of two that start together

const Action& action_at(const Schedule& schedule, NeighborPlace place) {
  return schedule.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.position)];
}

/// Returns when the last action ends. Messages take `message` ticks and are sent as soon as they are made, behind the
/// ones before them on their channel; those of `together` when both can be.
Ticks end_of(const Schedule& schedule, Ticks message, const Together& together) {
  const ActionIds ids = action_ids(schedule);
  const auto count = static_cast<std::size_t>(ids.first_id.back());
  std::vector<Ticks> duration(count, 0), start(count, 0);
  std::vector<std::vector<std::size_t>> behind(count);
  std::vector<int> missing(count, 0);
  std::vector<std::size_t> mate(count, count);
  for (std::size_t id = 0; id < count; ++id) {
    const ActionPlace place = place_of(ids, static_cast<std::int32_t>(id));
    const Op op = action_at(schedule, {place.rank, place.position}).op;
    duration[id] = is_send(op) ? message : op == Op::kBackward ? 2 * kAction : is_compute(op) ? kAction : 0;
  }
  for (const Dependency& dependency : dependencies(schedule)) {
    behind[static_cast<std::size_t>(dependency.from)].push_back(static_cast<std::size_t>(dependency.to));
    ++missing[static_cast<std::size_t>(dependency.to)];
  }
  for (const auto& [one, other] : together) {
    mate[static_cast<std::size_t>(one)] = static_cast<std::size_t>(other);
    mate[static_cast<std::size_t>(other)] = static_cast<std::size_t>(one);
  }
  std::vector<std::size_t> ready;
  for (std::size_t id = 0; id < count; ++id)
    if (missing[id] == 0) ready.push_back(id);
  std::vector<bool> has_come(count, false);
  std::size_t done = 0;
  Ticks end = 0;
  while (!ready.empty()) {
    const std::size_t id = ready.back();
    ready.pop_back();
    has_come[id] = true;
    std::vector<std::size_t> starting = {id};
    if (mate[id] < count) {
      if (!has_come[mate[id]]) continue;
      start[id] = start[mate[id]] = std::max(start[id], start[mate[id]]);
      starting.push_back(mate[id]);
    }
    for (const std::size_t one : starting) {
      ++done;
      end = std::max(end, start[one] + duration[one]);
      for (const std::size_t next : behind[one]) {
        start[next] = std::max(start[next], start[one] + duration[one]);
        if (--missing[next] == 0) ready.push_back(next);
      }
    }
  }
  CHECK(done == count);  // nothing waits in a circle
  return end;
}

Schedule lowered_for(std::string_view name, int ranks, Receives receives) {
  const CatalogueEntry& entry = catalogue_entry(name);
  return lower(make_schedule(name, {.ranks = ranks,
                                    .microbatches = 2 * ranks,
                                    .chunks = entry.takes_chunks ? 2 : entry.chunks,
                                    .slices = entry.takes_slices ? 2 : 1}),
               {.receives = receives});
}

RankGrid grid_of(int ranks) {
  return ProcessGrid{.pipeline = ranks};
}

/// Calls visit(entry, ranks, receives, schedule) for all that there are.
template <class Visit>
void for_each_schedule(Visit visit) {
  for (const CatalogueEntry& entry : catalogue())
    for (const int ranks : {2, 4, 6, 8})
      for (const Receives receives : {Receives::kEarly, Receives::kLate}) {
        Schedule schedule;
        try {
          schedule = lowered_for(entry.name, ranks, receives);
        } catch (const InputError&) {
          continue;
        }
        CAPTURE(entry.name);
        CAPTURE(ranks);
        visit(entry, ranks, receives, schedule);
      }
}

}  // namespace

TEST_CASE("messages of a group stand side by side on both ranks, each in one group, with an action before its taker") {
  std::map<std::string, int> groups;
  for_each_schedule([&](const CatalogueEntry& entry, int ranks, Receives receives, const Schedule& schedule) {
    const std::vector<MessagePair> pairs = message_pairs(schedule, grid_of(ranks));
    const ActionIds ids = action_ids(schedule);
    std::set<std::int32_t> members;
    for (const MessagePair& pair : pairs) {
      CHECK(pair.ends[0].rank != pair.ends[1].rank);
      std::multiset<Op> ops;
      for (const NeighborPlace& end : pair.ends)
        for (const std::int32_t next : {0, 1}) {
          const std::int32_t position = end.position + next;
          ops.insert(action_at(schedule, {end.rank, position}).op);
          members.insert(ids.first_id[static_cast<std::size_t>(end.rank)] + position);
        }
      CHECK(std::ranges::count_if(ops, is_send) == 2);
      CHECK(std::ranges::count_if(ops, is_recv) == 2);
    }
    CHECK(members.size() == 4 * pairs.size());
    groups[std::string(entry.name) + (receives == Receives::kLate ? " late" : "")] += static_cast<int>(pairs.size());
  });
  // These go on with one stage while they exchange for another. 1F1B's exchange is between two actions.
  for (const char* name : {"dualpipe", "dualpipev", "v-1f1b", "v-half"}) CHECK(groups.at(name) > 0);
  for (const char* name : {"1f1b", "1f1b late", "gpipe"}) CHECK(groups.at(name) == 0);
}

TEST_CASE("a group costs nothing while a message takes no longer than an action") {
  int compared = 0;
  for_each_schedule([&](const CatalogueEntry&, int ranks, Receives, const Schedule& schedule) {
    Together together;
    for (const MessagePair& pair : message_pairs(schedule, grid_of(ranks))) together.push_back(pair.sends);
    if (together.empty()) return;
    for (const Ticks message : {kAction / 10, kAction / 2, kAction}) {
      CHECK(end_of(schedule, message, together) == end_of(schedule, message, {}));
      ++compared;
    }
  });
  CHECK(compared > 30);
}

TEST_CASE("a group of messages that are taken at once would cost: 1F1B's exchanges, with late receives, are none") {
  constexpr int kRanks = 4, kMicrobatches = 2 * kRanks;
  const Schedule schedule = lowered_for("1f1b", kRanks, Receives::kLate);
  CHECK(message_pairs(schedule, grid_of(kRanks)).empty());
  const ActionTable table(schedule);
  Together exchanges;  // each RECV of a gradient right before the SEND of an activation
  for (int rank = 0; rank + 1 < kRanks; ++rank) {
    const std::vector<Action>& actions = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i + 1 < actions.size(); ++i)
      if (actions[i].op == Op::kRecvGradient && actions[i + 1].op == Op::kSendActivation)
        exchanges.push_back({table.find(Op::kSendGradient, rank + 1, actions[i].microbatch),
                             table.find(Op::kSendActivation, rank, actions[i + 1].microbatch)});
  }
  // Between ranks r and r + 1 the steady state has m - (p - r - 1) of them.
  CHECK(exchanges.size() == 3 * kMicrobatches - 3 - 2 - 1);
  // The last rank has an activation before it needs it, behind its backward, which is the longer. In a group with the
  // gradient that the backward makes, it would come a message later, each time that the two ranks wait for each other.
  for (const Ticks message : {kAction / 10, kAction / 2, kAction})
    CHECK(end_of(schedule, message, exchanges) >= end_of(schedule, message, {}) + 3 * message);
}

TEST_CASE("between meshes of different shape there are no groups of two messages") {
  const Schedule schedule = lowered_for("v-1f1b", 4, Receives::kEarly);
  RankGrid grid = grid_of(4);
  const std::vector<MessagePair> alike = message_pairs(schedule, grid);
  REQUIRE(!alike.empty());
  grid.meshes.assign(4, StageMesh{.data = 1, .tensor = 2});
  CHECK(message_pairs(schedule, grid).size() == alike.size());
  for (std::size_t rank = 0; rank < 4; rank += 2) grid.meshes[rank] = {.data = 2, .tensor = 1};
  CHECK(message_pairs(schedule, grid).empty());  // neighbours differ
}

}  // namespace plumb::test
