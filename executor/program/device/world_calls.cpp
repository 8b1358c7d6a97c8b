#include "executor/program/device/world_calls.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "executor/program/device/call_clocks.h"

namespace plumb { inline namespace executor {
namespace {

using Calls = std::vector<std::int32_t>;

void add_all(Calls& to, const Calls& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Returns the sets of tracks that do one piece together: a single track, or the members of an exchange.
std::vector<std::vector<std::size_t>> parties(const std::vector<CallTrack>& tracks, std::size_t piece) {
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

class Expansion {
 public:
  Expansion(const DeviceProgram& pipeline, std::vector<std::vector<CallTrack>> tracks, int ranks)
      : pipeline_(pipeline),
        world_{.tracks = std::move(tracks), .calls = {}, .ranks = ranks},
        clocks_(ranks),
        tails_(static_cast<std::size_t>(ranks) * kDeviceStreamCount),
        ends_(pipeline.calls.size()),
        bucket_ends_(pipeline.calls.size()) {}

  WorldProgram expand() {
    for (std::size_t call = 0; call < pipeline_.calls.size(); ++call) {
      const std::vector<CallTrack>& tracks = world_.tracks[call];
      ends_[call].resize(tracks.size());
      made_.assign(tracks.size(), {});
      bucket_ends_[call].resize(tracks.size());
      if (tracks.empty()) continue;
      for (std::size_t piece = 0; piece < tracks.front().pieces.size(); ++piece)
        for (const std::vector<std::size_t>& party : parties(tracks, piece)) add(call, piece, party);
    }
    return std::move(world_);
  }

 private:
  Calls& tail_of(int rank, DeviceStream stream) {
    return tails_[static_cast<std::size_t>(rank) * kDeviceStreamCount + static_cast<std::size_t>(stream)];
  }

  /// Returns the calls that a track's part of a call waits for, besides those of its stream.
  Calls waits_of(std::size_t call, const CallTrack& track) const {
    Calls waits;
    for (const DeviceWait& wait : pipeline_.calls[call].waits) {
      const auto at = static_cast<std::size_t>(wait.call);
      const std::vector<CallTrack>& others = world_.tracks[at];
      for (std::size_t other = 0; other < others.size(); ++other) {
        if (others[other].lane != track.lane) continue;
        if (const auto moment = bucket_ends_[at][other].find(wait.bucket); moment != bucket_ends_[at][other].end())
          add_all(waits, moment->second);
        else
          for (const auto& [stream, ends] : ends_[at][other]) add_all(waits, ends);
      }
    }
    return waits;
  }

  void add(std::size_t call, std::size_t piece, const std::vector<std::size_t>& party) {
    const std::vector<CallTrack>& tracks = world_.tracks[call];
    Calls wanted, made;
    for (const std::size_t member : party) {
      const CallTrack& track = tracks[member];
      assert(track.pieces.size() == tracks.front().pieces.size() && "ranks of a group do the same");
      const WorldPiece& own = track.pieces[piece];
      if (!ends_[call][member].contains(track.stream_of(piece))) {  // the call's first piece there
        add_all(wanted, waits_of(call, track));
        add_all(wanted, tail_of(track.rank, track.stream));
      }
      for (const std::int32_t former : own.behind) add_all(wanted, made_[member][static_cast<std::size_t>(former)]);
      add_all(wanted, tail_of(track.rank, track.stream_of(piece)));
    }
    std::ranges::sort(wanted, std::greater<>{});
    for (const std::size_t member : party) {
      made.push_back(static_cast<std::int32_t>(world_.calls.size()));
      world_.calls.push_back({.call = static_cast<std::int32_t>(call),
                              .track = static_cast<std::int32_t>(member),
                              .piece = static_cast<std::int32_t>(piece),
                              .waits = {}});
      clocks_.begin(tracks[member].rank, tracks[member].stream_of(piece));
      for (const std::int32_t wait : wanted) {
        if (clocks_.precedes_newest(wait)) continue;
        world_.calls.back().waits.push_back(wait);
        clocks_.wait({.call = wait});
      }
    }
    for (const std::size_t member : party) {
      const DeviceStream stream = tracks[member].stream_of(piece);
      tail_of(tracks[member].rank, stream) = made;
      ends_[call][member][stream] = made;
      made_[member].push_back(made);
      if (const int bucket = tracks[member].pieces[piece].bucket; bucket >= 0)
        bucket_ends_[call][member][bucket] = made;
    }
  }

  const DeviceProgram& pipeline_;
  WorldProgram world_;
  CallClocks clocks_;
  // [rank, stream] its last piece, with those of all members.
  std::vector<Calls> tails_;
  std::vector<std::vector<std::map<DeviceStream, Calls>>> ends_;  // [call][track] its last pieces on each stream
  // [track][piece] its calls, for the call that is being added.
  std::vector<std::vector<Calls>> made_;
  std::vector<std::vector<std::map<int, Calls>>> bucket_ends_;  // [call][track][bucket]
};

}  // namespace

WorldProgram world_calls(const DeviceProgram& pipeline, std::vector<std::vector<CallTrack>> tracks, int ranks) {
  return Expansion(pipeline, std::move(tracks), ranks).expand();
}

std::vector<DeviceLane> lanes_of(const WorldProgram& world) {
  std::set<DeviceLane> lanes;
  for (const std::vector<CallTrack>& tracks : world.tracks)
    for (const CallTrack& track : tracks)
      for (std::size_t piece = 0; piece < track.pieces.size(); ++piece)
        lanes.insert({track.rank, track.stream_of(piece)});
  return {lanes.begin(), lanes.end()};
}

}}  // namespace plumb::executor
