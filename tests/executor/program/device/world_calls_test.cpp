#include "executor/program/device/world_calls.h"

#include <string>

#include <doctest/doctest.h>

#include "executor/program/device/call_clocks.h"
#include "executor/program/device/plan_device.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tests/executor/program/device/check_world_calls.h"

namespace plumb::test {
namespace {

/// Two replicas, or a tensor group of two: F and B exchange in the middle, REDUCE_GRAD is an exchange alone.
std::vector<std::vector<CallTrack>> tracks_of(const DeviceProgram& program, const Schedule& lowered, int lanes) {
  const ActionIds ids = action_ids(lowered);
  std::vector<std::vector<CallTrack>> tracks;
  for (const DeviceCall& call : program.calls) {
    const ActionPlace place = place_of(ids, call.action);
    const Op op = lowered.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.position)].op;
    std::vector<WorldPiece> pieces(1);
    if (op == Op::kReduceGrad) pieces = {{.communicator = 10 + call.rank}};
    if (op == Op::kForward || op == Op::kBackward) pieces = {{}, {.communicator = call.rank}, {}};
    tracks.emplace_back();
    for (int lane = 0; lane < lanes; ++lane)
      tracks.back().push_back(
          {.rank = call.rank * lanes + lane, .lane = lane, .stream = call.stream, .pieces = pieces});
  }
  return tracks;
}

CostTable even_costs(const Schedule& lowered) {
  CostTable costs = chunk_cost_table(static_cast<int>(lowered.stages.size()), {});
  for (StageCosts& stage : costs.stages) {
    stage.memory = {.forward_bytes = 1000, .forward_workspace_bytes = 300, .backward_workspace_bytes = 400};
    stage.activation_message_bytes = stage.gradient_message_bytes = 100;
  }
  return costs;
}

}  // namespace

TEST_CASE("ranks that share a device stand behind each other's calls, and no wait is one too many") {
  int missed = 0, waits = 0;
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "zb-v"}) {
    CAPTURE(name);
    const Schedule lowered =
        lower(make_schedule(name, {.ranks = 2, .microbatches = 4}), {.data = {.enabled = true, .zero = 0}});
    const DeviceProgram program = plan_device(lowered, even_costs(lowered), false, DeviceWaits::kAll);
    WorldProgram world = world_calls(program, tracks_of(program, lowered, 2), 4);
    for (const std::string& finding : check_world_calls(world, program)) FAIL_CHECK(finding);
    for (WorldCall& call : world.calls)
      for (std::size_t i = 0; i < call.waits.size(); ++i, ++waits) {
        const std::vector<std::int32_t> all = call.waits;
        call.waits.erase(call.waits.begin() + static_cast<std::ptrdiff_t>(i));
        if (check_world_calls(world, program).empty()) ++missed;
        call.waits = all;
      }
  }
  CHECK(waits > 100);
  CHECK(missed == 0);
}

TEST_CASE("pieces on another stream run beside their call's, but for those that name them") {
  // F: the first layer's weights and the next one's, aside; compute behind either; a sum aside, which F leaves behind.
  const DeviceStream aside = DeviceStream::kReduce;
  const std::vector<WorldPiece> pieces = {{.communicator = 7, .stream = aside},
                                          {.communicator = 7, .stream = aside},
                                          {.behind = {0}},
                                          {.behind = {1}},
                                          {.communicator = 7, .stream = aside, .behind = {3}}};
  const Schedule lowered =
      lower(make_schedule("1f1b", {.ranks = 1, .microbatches = 3}), {.data = {.enabled = true, .zero = 0}});
  const DeviceProgram program = plan_device(lowered, even_costs(lowered), false, DeviceWaits::kAll);
  std::vector<std::vector<CallTrack>> tracks = tracks_of(program, lowered, 2);
  for (std::vector<CallTrack>& of_call : tracks)
    for (CallTrack& track : of_call)
      if (track.pieces.size() == 3) track.pieces = pieces;
  WorldProgram world = world_calls(program, tracks, 2);
  for (const std::string& finding : check_world_calls(world, program)) FAIL_CHECK(finding);
  CallClocks clocks(2);
  std::vector<std::int32_t> of_piece(pieces.size());  // of rank 0's newest call
  for (std::size_t i = 0; i < world.calls.size(); ++i) {
    const WorldCall& call = world.calls[i];
    const CallTrack& track = tracks[static_cast<std::size_t>(call.call)][static_cast<std::size_t>(call.track)];
    clocks.begin(track.rank, track.stream_of(static_cast<std::size_t>(call.piece)));
    for (const std::int32_t wait : call.waits) clocks.wait({.call = wait});
    if (track.rank > 0 || track.pieces.size() < pieces.size()) continue;
    of_piece[static_cast<std::size_t>(call.piece)] = static_cast<std::int32_t>(i);
    if (call.piece == 2) {
      CHECK(clocks.precedes_newest(of_piece[0]));
      CHECK(!clocks.precedes_newest(of_piece[1]));
    }
    if (call.piece == 3) CHECK(clocks.precedes_newest(of_piece[1]));
  }
  int missed = 0;
  for (WorldCall& call : world.calls)
    for (std::size_t i = 0; i < call.waits.size(); ++i) {
      const std::vector<std::int32_t> all = call.waits;
      call.waits.erase(call.waits.begin() + static_cast<std::ptrdiff_t>(i));
      if (check_world_calls(world, program).empty()) ++missed;
      call.waits = all;
    }
  CHECK(missed == 0);
}

TEST_CASE("a rank on a device of its own has its own calls alone, and waits for no other") {
  const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), {});
  const DeviceProgram program = plan_device(lowered, even_costs(lowered), false, DeviceWaits::kAll);
  std::vector<std::vector<CallTrack>> tracks = tracks_of(program, lowered, 1);
  for (std::vector<CallTrack>& of_call : tracks) std::erase_if(of_call, [](const CallTrack& t) { return t.rank != 1; });
  const WorldProgram world = world_calls(program, tracks, 2);
  CHECK(check_world_calls(world, program).empty());
  REQUIRE(!world.calls.empty());
  for (const WorldCall& call : world.calls)
    CHECK(world.tracks[static_cast<std::size_t>(call.call)][static_cast<std::size_t>(call.track)].rank == 1);
}

}  // namespace plumb::test
