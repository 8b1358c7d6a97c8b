#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/forms/json_text.h"
#include "traces/chrome/chrome_trace.h"
#include "traces/draw/timeline_rows.h"

namespace plumb { inline namespace traces {
namespace {

/// Names of chrome://tracing's palette, by operation; Perfetto picks its own.
constexpr std::array<std::string_view, kOpCount> kColors = {"rail_response",    // F, blue
                                                            "good",             // B, green
                                                            "cq_build_passed",  // I, light green
                                                            "rail_animation",   // W, orange
                                                            "rail_idle",        // R, yellow
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",  // messages
                                                            "thread_state_iowait",
                                                            "grey",
                                                            "thread_state_iowait",  // UNSHARD, RESHARD, REDUCE_GRAD
                                                            "terrible",             // OPTIMIZER_STEP, red
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",
                                                            "thread_state_runnable",  // messages of weights
                                                            "yellow",
                                                            "yellow",
                                                            "yellow",
                                                            "yellow"};  // OFFLOAD, RELOAD, EVICT, LOAD

std::string quoted(const std::string& text) {
  return json_line(nlohmann::json(text));
}

/// The format's unit is a microsecond, a viewer's resolution a nanosecond.
constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;

/// A time as a trace writes it: microseconds, exactly ("12", "0.001").
struct Microseconds {
  std::int64_t nanoseconds = 0;
};

/// The text of a trace under way. A piece is handed over when it is full.
class TraceText {
 public:
  explicit TraceText(const TextSink& sink) : sink_(sink) {}

  /// Appends texts, whole numbers and Microseconds.
  template <typename... Parts>
  void put(const Parts&... parts) {
    (put_part(parts), ...);
  }

  /// Writes the comma between two events.
  void begin_event() {
    if (has_events_) put(",\n");
    has_events_ = true;
  }

  /// Hands over the rest.
  void finish() {
    if (size_ > 0) sink_({piece_.data(), size_});
    size_ = 0;
  }

 private:
  void put_part(std::string_view text) {
    while (text.size() > piece_.size() - size_) {
      const std::string_view first = text.substr(0, piece_.size() - size_);
      text.remove_prefix(first.size());
      copy(first);
      finish();
    }
    copy(text);
  }

  void put_part(std::int64_t number) {
    constexpr std::size_t kMostDigits = 20;
    if (piece_.size() - size_ < kMostDigits) finish();
    char* const begin = piece_.data() + size_;
    size_ += static_cast<std::size_t>(std::to_chars(begin, begin + kMostDigits, number).ptr - begin);
  }

  void put_part(Microseconds time) {
    const std::int64_t whole = time.nanoseconds / kNanosecondsPerMicrosecond;
    const std::int64_t rest = std::abs(time.nanoseconds % kNanosecondsPerMicrosecond);
    if (time.nanoseconds < 0 && whole == 0) put("-");
    put(whole);
    if (rest == 0) return;
    const std::array<char, 4> digits = {'.', digit(rest / 100), digit(rest / 10 % 10), digit(rest % 10)};
    put(std::string_view(digits.data(), digits.size()));
  }

  static char digit(std::int64_t number) { return static_cast<char>('0' + number); }

  void copy(std::string_view text) {
    std::memcpy(piece_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  const TextSink& sink_;
  std::array<char, kTracePiece> piece_;
  std::size_t size_ = 0;
  bool has_events_ = false;
};

/// Returns the most nanoseconds, up to the rounded end, with which a viewer sees the end no later than the span that
/// starts there. A viewer adds start and duration as doubles in microseconds, or as nanoseconds that it cuts off each
/// by itself (Perfetto).
std::int64_t duration_within(std::int64_t start, std::int64_t end) {
  const auto read = [](std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / kNanosecondsPerMicrosecond;
  };
  const auto cut = [&](std::int64_t nanoseconds) { return std::trunc(read(nanoseconds) * kNanosecondsPerMicrosecond); };
  const auto passes_end = [&](std::int64_t duration) {
    return read(start) + read(duration) > read(end) || cut(start) + cut(duration) > cut(end);
  };
  std::int64_t duration = end - start;
  while (duration > 0 && passes_end(duration)) --duration;
  return duration;
}

/// True if the nanoseconds that are written give the time exactly, also to a reader of doubles.
bool is_said_exactly(SimTime time) {
  constexpr SimTime kExactInDoubles{std::int64_t{1} << 50};
  return std::chrono::abs(time) < kExactInDoubles && std::chrono::nanoseconds(nanoseconds_of(time)) == time;
}

/// The place of a timeline among the several of one file.
struct Lane {
  int number = 0;
  int count = 1;
  std::string name;               ///< stands behind the rank's
  std::int64_t first_thread = 1;  ///< thread 0 is the idle thread to Perfetto
  std::int64_t first_arrow = 0;
};

class Writer {
 public:
  Writer(const Timeline& timeline, TraceText& text, Lane lane = {})
      : Writer(timeline, schedule_of(timeline), text, std::move(lane)) {}

  void write_events() {
    for (int r = 0; r < static_cast<int>(timeline_.ranks.size()); ++r) {
      name_rank(r);
      for (std::size_t i = 0; i < timeline_.ranks[r].spans.size(); ++i) write_span(r, i);
      for (const MemorySample& sample : timeline_.ranks[r].memory) write_memory(r, kMemoryCounter, sample);
      for (int kind = 0; kind < kMemoryKindCount; ++kind) {
        const std::string name = memory_counter_name(static_cast<MemoryKind>(kind));
        for (const MemorySample& sample : timeline_.ranks[r].memory_by_kind[kind]) write_memory(r, name, sample);
      }
      for (std::size_t i = 0; i < timeline_.ranks[r].spans.size(); ++i) write_arrow(r, i);
    }
  }

  /// These return the first thread and arrow of the lane that follows.
  std::int64_t next_thread() const { return next_thread_; }
  std::int64_t next_arrow() const { return arrows_; }

 private:
  /// `schedule` is schedule_of(timeline); it is needed here only.
  Writer(const Timeline& timeline, const Schedule& schedule, TraceText& text, Lane lane)
      : timeline_(timeline),
        text_(text),
        lane_(std::move(lane)),
        ids_(action_ids(schedule)),
        table_(schedule),
        neighbors_(stage_neighbors(schedule)) {
    for (int s = 0; s < static_cast<int>(timeline.stages.size()); ++s) {
      const std::string in_quotes = quoted(stage_name(timeline, s));
      stage_names_.push_back(in_quotes.substr(1, in_quotes.size() - 2));
    }
    std::int64_t tid = lane_.first_thread;
    for (const RankTimeline& rank : timeline.ranks) {
      rows_.push_back(rows_of(rank));
      first_tid_.push_back(tid);
      tid += static_cast<std::int64_t>(rows_.back().rows.size());
    }
    next_thread_ = tid;
    arrows_ = lane_.first_arrow;
  }

  int pid_of(int rank) const { return rank * lane_.count + lane_.number + 1; }

  void name_rank(int rank) {
    std::string stages;
    for (std::size_t s = 0; s < timeline_.stages.size(); ++s) {
      if (timeline_.stages[s].rank == rank)
        stages += fmt::format("{}{}", stages.empty() ? ": " : ", ", stage_names_[s]);
    }
    const int pid = pid_of(rank);
    text_.begin_event();
    text_.put("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", pid, ",\"args\":{\"name\":\"rank ", rank, lane_.name,
              stages, "\"}},\n");
    text_.put("{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":", pid, ",\"args\":{\"sort_index\":", pid - 1,
              "}}");
    for (std::size_t i = 0; i < rows_[rank].rows.size(); ++i) {
      const RankRows::Row& row = rows_[rank].rows[i];
      const std::int64_t tid = first_tid_[rank] + static_cast<std::int64_t>(i);
      const std::string number = row.number == 0 ? "" : fmt::format(" {}", row.number + 1);
      text_.begin_event();
      text_.put("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":", pid, ",\"tid\":", tid, ",\"args\":{\"name\":\"",
                stream_name(row.stream), number, "\"}}");
      text_.begin_event();
      text_.put("{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":", pid, ",\"tid\":", tid,
                ",\"args\":{\"sort_index\":", static_cast<std::int64_t>(i), "}}");
    }
  }

  void write_span(int rank, std::size_t index) {
    const Span& span = timeline_.ranks[rank].spans[index];
    const Action& action = span.action;
    const std::string_view op = op_name(action.op);
    text_.begin_event();
    text_.put("{\"ph\":\"X\",\"name\":\"", op);
    if (has_microbatch(action.op)) text_.put(" mb ", action.microbatch);
    if (action.part != 0) text_.put(" part ", action.part);
    const std::int64_t start = nanoseconds_of(span.start), end = nanoseconds_of(span.end);
    const std::int64_t duration = duration_within(start, end);
    text_.put(", ", stage_names_[action.stage], "\",\"cat\":\"", stream_name(span.stream), "\",\"pid\":", pid_of(rank),
              ",\"tid\":", tid_of(rank, index), ",\"ts\":", Microseconds{start}, ",\"dur\":", Microseconds{duration});
    if (duration != end - start || !is_said_exactly(span.start) || !is_said_exactly(span.end))
      text_.put(",\"", kExactTimes, "\":[", span.start.count(), ",", span.end.count(), "]");
    text_.put(",\"cname\":\"", kColors[static_cast<std::size_t>(action.op)], "\",\"args\":{\"op\":\"", op,
              "\",\"stage\":", action.stage);
    if (has_microbatch(action.op)) text_.put(",\"microbatch\":", action.microbatch);
    if (action.part != 0) text_.put(",\"part\":", action.part);
    if (action.overlaps_next) text_.put(",\"overlaps_next\":true");
    if (span.critical) text_.put(",\"critical\":true");
    text_.put("}}");
  }

  void write_memory(int rank, std::string_view counter, const MemorySample& sample) {
    text_.begin_event();
    text_.put("{\"ph\":\"C\",\"name\":\"", counter, "\",\"pid\":", pid_of(rank),
              ",\"ts\":", Microseconds{nanoseconds_of(sample.time)});
    if (!is_said_exactly(sample.time)) text_.put(",\"", kExactTimes, "\":[", sample.time.count(), "]");
    text_.put(",\"args\":{\"bytes\":", sample.bytes, "}}");
  }

  /// Writes an arrow from a send to its receive, where both last long enough to be seen. An arrow binds to the span
  /// around its end, so it ends a little ahead of the delivery (a nanosecond, which Perfetto resolves).
  void write_arrow(int rank, std::size_t index) {
    constexpr SimTime kNanosecond{1000};
    const Span& send = timeline_.ranks[rank].spans[index];
    if (!is_send(send.action.op) || send.end - send.start < kNanosecond) return;
    const bool forward = send.action.op == Op::kSendActivation;
    const int consumer = (forward ? neighbors_.successor : neighbors_.predecessor)[send.action.stage];
    const std::int32_t id = table_.find(forward ? Op::kRecvActivation : Op::kRecvGradient, consumer,
                                        send.action.microbatch, send.action.part);
    if (id == ActionTable::kNone) return;
    const ActionPlace place = place_of(ids_, id);
    const Span& receive = timeline_.ranks[place.rank].spans[place.position];
    if (receive.end - receive.start < kNanosecond) return;
    write_arrow_end("\"s\"", rank, tid_of(rank, index), send.start);
    write_arrow_end("\"f\",\"bp\":\"e\"", place.rank, tid_of(place.rank, static_cast<std::size_t>(place.position)),
                    receive.end - kNanosecond);
    ++arrows_;
  }

  void write_arrow_end(std::string_view phase, int rank, std::int64_t tid, SimTime time) {
    text_.begin_event();
    text_.put("{\"ph\":", phase, ",\"cat\":\"message\",\"name\":\"message\",\"id\":", arrows_,
              ",\"pid\":", pid_of(rank), ",\"tid\":", tid, ",\"ts\":", Microseconds{nanoseconds_of(time)}, "}");
  }

  std::int64_t tid_of(int rank, std::size_t index) const { return first_tid_[rank] + rows_[rank].row[index]; }

  const Timeline& timeline_;
  TraceText& text_;
  const Lane lane_;
  ActionIds ids_;
  ActionTable table_;
  StageNeighbors neighbors_;
  std::vector<std::string> stage_names_;  ///< [stage] as it stands inside a JSON string
  std::vector<RankRows> rows_;            ///< [rank]
  std::vector<std::int64_t> first_tid_;   ///< [rank]
  std::int64_t next_thread_ = 0;
  std::int64_t arrows_ = 0;
};

/// Returns the facts of a timeline that read_chrome_trace needs besides its events.
std::string metadata_of(const Timeline& timeline) {
  nlohmann::json stages = nlohmann::json::array();
  for (const StagePlace& place : timeline.stages) stages.push_back({place.rank, place.model_part, place.lane});
  const nlohmann::json data = {{"plumb_timeline", 1},
                               {"title", timeline.title},
                               {"source", timeline.source == Timeline::Source::kPredicted ? "predicted" : "measured"},
                               {"ranks", timeline.ranks.size()},
                               {"microbatches", timeline.microbatches},
                               {"stages", stages},
                               {"stage_names", timeline.stage_names}};
  return json_line(data);
}

/// Returns the pieces that `write` hands over as one text.
template <typename Write>
std::string joined(Write write) {
  std::string text;
  write([&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace

std::int64_t nanoseconds_of(SimTime time) {
  return std::chrono::round<std::chrono::nanoseconds>(time).count();
}

std::string memory_counter_name(MemoryKind kind) {
  return fmt::format("{}: {}", kMemoryCounter, memory_kind_name(kind));
}

void write_chrome_trace(const Timeline& timeline, const TextSink& sink) {
  TraceText text(sink);
  text.put("{\"displayTimeUnit\":\"ms\",\"otherData\":", metadata_of(timeline), ",\"traceEvents\":[\n");
  Writer(timeline, text).write_events();
  text.put("\n]}\n");
  text.finish();
}

std::string write_chrome_trace(const Timeline& timeline) {
  return joined([&](const TextSink& sink) { write_chrome_trace(timeline, sink); });
}

void write_compared_trace(const Timeline& predicted, const Timeline& measured, const TextSink& sink) {
  TraceText text(sink);
  text.put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  Writer above(predicted, text, {.number = 0, .count = 2, .name = " predicted"});
  above.write_events();
  Writer below(measured, text,
               {.number = 1,
                .count = 2,
                .name = " measured",
                .first_thread = above.next_thread(),
                .first_arrow = above.next_arrow()});
  below.write_events();
  text.put("\n]}\n");
  text.finish();
}

std::string write_compared_trace(const Timeline& predicted, const Timeline& measured) {
  return joined([&](const TextSink& sink) { write_compared_trace(predicted, measured, sink); });
}

}}  // namespace plumb::traces
