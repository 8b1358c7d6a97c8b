#include "tests/executor/program/device/check_world_calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "executor/program/device/call_clocks.h"

namespace plumb::test {
namespace {

/// Returns the sets of tracks that do one piece together: one alone, or the members of an exchange.
std::vector<std::vector<std::size_t>> parties_of(const std::vector<CallTrack>& tracks, std::size_t piece) {
  std::vector<std::vector<std::size_t>> parties;
  std::map<std::int32_t, std::size_t> of_communicator;
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    const std::int32_t communicator = tracks[track].pieces[piece].communicator;
    if (communicator < 0) {
      parties.push_back({track});
      continue;
    }
    const auto [it, is_new] = of_communicator.try_emplace(communicator, parties.size());
    if (is_new) parties.emplace_back();
    parties[it->second].push_back(track);
  }
  return parties;
}

class WorldChecker {
 public:
  WorldChecker(const WorldProgram& world, const DeviceProgram& pipeline)
      : world_(world), pipeline_(pipeline), clocks_(world.ranks), at_(pipeline.calls.size()) {}

  std::vector<std::string> check() {
    for (std::size_t i = 0; i < world_.calls.size(); ++i) {
      const WorldCall& call = world_.calls[i];
      const CallTrack& track = track_of(call);
      const DeviceStream stream = track.stream_of(static_cast<std::size_t>(call.piece));
      clocks_.begin(track.rank, stream);
      std::int32_t& newest = newest_[{track.rank, stream}];  // 1 + its number; 0: none
      before_.push_back(newest - 1);
      newest = static_cast<std::int32_t>(i) + 1;
      for (const std::int32_t wait : call.waits) {
        if (wait < 0 || static_cast<std::size_t>(wait) >= i)
          return {fmt::format("world call {} waits for call {}, which is not enqueued before it", i, wait)};
        clocks_.wait({.call = wait});
      }
      auto& tracks = at_[static_cast<std::size_t>(call.call)];
      tracks.resize(world_.tracks[static_cast<std::size_t>(call.call)].size());
      tracks[static_cast<std::size_t>(call.track)].push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t call = 0; call < at_.size(); ++call) {
      check_pieces(call);
      check_waits(call);
    }
    return std::move(found_);
  }

 private:
  const CallTrack& track_of(const WorldCall& call) const {
    return world_.tracks[static_cast<std::size_t>(call.call)][static_cast<std::size_t>(call.track)];
  }

  void expect(std::int32_t former, std::int32_t latter) {
    if (clocks_.precedes(former, latter)) return;
    const auto text = [&](std::int32_t of) {
      const WorldCall& call = world_.calls[static_cast<std::size_t>(of)];
      return fmt::format("piece {} of call {} on rank {}", call.piece, call.call, track_of(call).rank);
    };
    found_.push_back(fmt::format("{} does not stand behind {}", text(latter), text(former)));
  }

  void check_pieces(std::size_t call) {
    const std::vector<CallTrack>& tracks = world_.tracks[call];
    for (std::size_t track = 0; track < tracks.size(); ++track) {
      if (at_[call][track].size() != tracks[track].pieces.size())
        found_.push_back(fmt::format("call {} is not all there on rank {}", call, tracks[track].rank));
      for (std::size_t piece = 0; piece < at_[call][track].size(); ++piece)
        for (const std::size_t former : formers(tracks[track], piece))
          for (const std::size_t peer : peers(tracks, track, former))
            expect(at_[call][peer][former], at_[call][track][piece]);
      for (std::size_t piece = 0; piece < at_[call][track].size(); ++piece)
        for (const std::size_t peer : peers(tracks, track, piece))
          if (const std::int32_t before = before_[static_cast<std::size_t>(at_[call][peer][piece])]; before >= 0)
            expect(before, at_[call][track][piece]);
      for (std::size_t piece = 1; piece < at_[call][track].size(); ++piece)
        for (const std::size_t peer : peers(tracks, track, piece))
          for (const std::size_t former : formers(tracks[peer], piece))
            expect(at_[call][peer][former], at_[call][track][piece]);
    }
  }

  /// Pieces of the call that one stands behind: the one before on its stream, and those it names.
  static std::vector<std::size_t> formers(const CallTrack& track, std::size_t piece) {
    std::vector<std::size_t> formers(track.pieces[piece].behind.begin(), track.pieces[piece].behind.end());
    for (std::size_t other = piece; other-- > 0;)
      if (track.stream_of(other) == track.stream_of(piece)) {
        formers.push_back(other);
        break;
      }
    return formers;
  }

  /// The first, or last, piece of a track on each stream.
  static std::vector<std::size_t> ends_of(const CallTrack& track, bool is_last) {
    std::map<DeviceStream, std::size_t> ends;
    for (std::size_t piece = 0; piece < track.pieces.size(); ++piece)
      if (is_last || !ends.contains(track.stream_of(piece))) ends[track.stream_of(piece)] = piece;
    std::vector<std::size_t> pieces;
    for (const auto& [stream, piece] : ends) pieces.push_back(piece);
    return pieces;
  }

  static std::vector<std::size_t> peers(const std::vector<CallTrack>& tracks, std::size_t track, std::size_t piece) {
    for (const std::vector<std::size_t>& party : parties_of(tracks, piece))
      if (std::ranges::find(party, track) != party.end()) return party;
    return {};
  }

  void check_waits(std::size_t call) {
    const std::vector<CallTrack>& tracks = world_.tracks[call];
    for (std::size_t track = 0; track < tracks.size(); ++track)
      for (const std::size_t piece : ends_of(tracks[track], false))
        for (const std::size_t peer : peers(tracks, track, piece))
          for (const DeviceWait& wait : pipeline_.calls[call].waits)
            expect_wait(wait, tracks[peer].lane, at_[call][track][piece]);
  }

  void expect_wait(const DeviceWait& wait, int lane, std::int32_t latter) {
    const auto of = static_cast<std::size_t>(wait.call);
    const std::vector<CallTrack>& others = world_.tracks[of];
    for (std::size_t other = 0; other < others.size(); ++other) {
      if (others[other].lane != lane) continue;
      std::vector<std::size_t> pieces = ends_of(others[other], true);
      for (std::size_t i = 0; i < others[other].pieces.size(); ++i)
        if (wait.bucket != DeviceWait::kEnd && others[other].pieces[i].bucket == wait.bucket) pieces = {i};
      for (const std::size_t piece : pieces)
        for (const std::size_t peer : peers(others, other, piece)) expect(at_[of][peer][piece], latter);
    }
  }

  const WorldProgram& world_;
  const DeviceProgram& pipeline_;
  CallClocks clocks_;
  std::vector<std::vector<std::vector<std::int32_t>>> at_;  // [call][track][piece] its world call
  std::map<std::pair<int, DeviceStream>, std::int32_t> newest_;
  std::vector<std::int32_t> before_;  // [world call] the one before it on its stream; -1: none
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check_world_calls(const WorldProgram& world, const DeviceProgram& pipeline) {
  return WorldChecker(world, pipeline).check();
}

}  // namespace plumb::test
