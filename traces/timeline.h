#pragma once
// A Timeline says when each action of a schedule ran: predicted by the simulator or measured by the executor.
// Everything downstream (statistics, Chrome trace, terminal drawing, comparison) takes a Timeline and cannot tell the
// two apart except by `source`.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/time.h"
#include "traces/memory_kind.h"

namespace plumb { inline namespace traces {

/// The lane of a rank on which a span is drawn.
enum class Stream : std::uint8_t { kCompute, kSend, kReceive, kCollective };

struct Span {
  SimTime start{0};
  SimTime end{0};
  Action action;
  Stream stream = Stream::kCompute;
  bool critical = false;  ///< lies on the critical path (predicted timelines)

  friend bool operator==(const Span&, const Span&) = default;
};

/// From this moment on the rank holds that many bytes.
struct MemorySample {
  SimTime time{0};
  std::int64_t bytes = 0;

  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

using MemorySamplesByKind = std::array<std::vector<MemorySample>, kMemoryKindCount>;

struct RankTimeline {
  /// In issue order. A SEND lasts from start to delivery of the transfer, a RECV from its issue to delivery.
  std::vector<Span> spans;
  std::vector<MemorySample> memory;    ///< ascending in time; the first has the bytes held at 0
  MemorySamplesByKind memory_by_kind;  ///< [kind] as `memory`, which is their sum; empty where kinds are not known

  friend bool operator==(const RankTimeline&, const RankTimeline&) = default;
};

struct Timeline {
  enum class Source : std::uint8_t { kPredicted, kMeasured };
  Source source = Source::kPredicted;
  std::string title;  ///< e.g. "1f1b p=4 m=8"
  int microbatches = 0;
  std::vector<StagePlace> stages;        ///< as in the schedule
  std::vector<std::string> stage_names;  ///< [stage] model-level, e.g. "layers 0-7"; may be empty
  std::vector<RankTimeline> ranks;       ///< [pipeline rank]

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Returns the stream that an operation's spans lie on.
Stream stream_of(Op op);

/// Returns "compute", "send", "receive" or "collective".
std::string_view stream_name(Stream stream);

/// Returns the schedule that the timeline ran: the action of each span. Name and weight policy are not known.
Schedule schedule_of(const Timeline& timeline);

/// Returns the stage's name, or "stage 3" where it has none.
std::string stage_name(const Timeline& timeline, int stage);

}}  // namespace plumb::traces
