#pragma once
// Writes a Timeline as a Chrome trace, the JSON that ui.perfetto.dev and chrome://tracing open, and reads it back.
//
// A rank is a process ("rank 0: layers 0-7"). Its streams are threads in fixed order: compute, send, receive,
// collective. Spans that overlap on one stream (transfers under way at once, overlapped pairs) lie on further threads
// of it, since overlapping events of one thread would be drawn as nested. Memory is a counter, and so is each kind of
// memory. An arrow leads from each send to the delivery of its receive. Times are whole nanoseconds. Start and end are
// rounded each by itself, so that a span that follows on a thread starts where the one before ended, or a nanosecond or
// two behind it where a viewer's doubles would make them overlap. Where rounding loses picoseconds the event also has
// them under a key that viewers pass over.
//
// The format is the "Trace Event Format" (Google, 2016); perfetto.dev/docs, "Other trace formats", says how Perfetto
// reads it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// Names of the counter that holds a rank's bytes, "memory", and of that of one kind of them, "memory: activations".
inline constexpr std::string_view kMemoryCounter = "memory";
std::string memory_counter_name(MemoryKind kind);

/// The key of an event's exact times in picoseconds: [start, end] of a span, [time] of a sample.
inline constexpr std::string_view kExactTimes = "exact_ps";

/// Returns the nearest whole nanosecond: the times of a trace.
std::int64_t nanoseconds_of(SimTime time);

/// Takes a text piece by piece, in its order.
using TextSink = std::function<void(std::string_view piece)>;

/// The most bytes of a piece.
inline constexpr std::size_t kTracePiece = std::size_t{64} << 10;

/// Hands the trace over as it is made. Besides a piece some 10 bytes a span are held, a fiftieth of the text.
/// tests/bench/README.md has measured speeds.
void write_chrome_trace(const Timeline& timeline, const TextSink& sink);
std::string write_chrome_trace(const Timeline& timeline);

/// Writes both in one trace, each rank twice: "rank 0 predicted" and below it "rank 0 measured". When read back, it is
/// a trace of rows.
void write_compared_trace(const Timeline& predicted, const Timeline& measured, const TextSink& sink);
std::string write_compared_trace(const Timeline& predicted, const Timeline& measured);

/// A span of a trace that is not ours.
struct ForeignSpan {
  std::string name;
  SimTime start{0};  ///< since the first event of the file
  SimTime end{0};

  friend bool operator==(const ForeignSpan&, const ForeignSpan&) = default;
};

/// The spans of one (process, thread).
struct ForeignRow {
  std::string process;  ///< its name, or its id where it has none
  std::string thread;
  std::vector<ForeignSpan> spans;  ///< in the order of the file

  friend bool operator==(const ForeignRow&, const ForeignRow&) = default;
};

struct ChromeTrace {
  std::optional<Timeline> timeline;  ///< of a trace that write_chrome_trace wrote
  std::vector<ForeignRow> rows;      ///< of any other trace; by process id, then thread id
};

/// Reads both forms of the format (an object with traceEvents, or a bare array).
/// read_chrome_trace(write_chrome_trace(t)) gives t back, exactly. Of foreign traces complete ("X") and begin/end ("B",
/// "E") events are taken, and the rest is passed over. Throws InputError with line and column if the text is not JSON
/// (a trace cut short, say), and with the number of the event if one of our own traces has been damaged or a time is
/// beyond kLatestMoment (schedules/time.h).
ChromeTrace read_chrome_trace(std::string_view json);

}}  // namespace plumb::traces
