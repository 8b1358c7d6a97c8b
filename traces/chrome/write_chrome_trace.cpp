#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/forms/json_text.h"
#include "traces/chrome/chrome_trace.h"
#include "traces/draw/timeline_rows.h"

namespace plumb { inline namespace traces {
namespace {

using Text = fmt::memory_buffer;

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
                                                            "yellow",
                                                            "yellow",
                                                            "yellow",
                                                            "yellow"};  // OFFLOAD, RELOAD, EVICT, LOAD

std::string quoted(const std::string& text) {
  return json_line(nlohmann::json(text));
}

/// The format's unit is a microsecond, a viewer's resolution a nanosecond.
constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;

/// Appends microseconds, exactly: "12", "0.001".
void append_microseconds(Text& text, std::int64_t nanoseconds) {
  const std::int64_t whole = nanoseconds / kNanosecondsPerMicrosecond;
  const std::int64_t rest = nanoseconds % kNanosecondsPerMicrosecond;
  const std::string_view sign = nanoseconds < 0 && whole == 0 ? "-" : "";
  if (rest == 0) {
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}"), whole);
  } else {
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}{}.{:03}"), sign, whole, rest < 0 ? -rest : rest);
  }
}

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
  explicit Writer(const Timeline& timeline, Lane lane = {})
      : timeline_(timeline),
        lane_(std::move(lane)),
        schedule_(schedule_of(timeline)),
        ids_(action_ids(schedule_)),
        table_(schedule_),
        neighbors_(stage_neighbors(schedule_)) {
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

  std::string write() {
    append("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n", metadata());
    write_events();
    append("\n]}}\n");
    return fmt::to_string(text_);
  }

  /// The events alone, with commas between them.
  std::string events() {
    write_events();
    return fmt::to_string(text_);
  }

  /// These return the first thread and arrow of the lane that follows.
  std::int64_t next_thread() const { return next_thread_; }
  std::int64_t next_arrow() const { return arrows_; }

 private:
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

  int pid_of(int rank) const { return rank * lane_.count + lane_.number + 1; }

  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void begin_event() {
    if (!first_event_) text_.append(std::string_view(",\n"));
    first_event_ = false;
  }

  std::string metadata() const {
    nlohmann::json stages = nlohmann::json::array();
    for (const StagePlace& place : timeline_.stages) stages.push_back({place.rank, place.model_part, place.lane});
    const nlohmann::json data = {
        {"plumb_timeline", 1},
        {"title", timeline_.title},
        {"source", timeline_.source == Timeline::Source::kPredicted ? "predicted" : "measured"},
        {"ranks", timeline_.ranks.size()},
        {"microbatches", timeline_.microbatches},
        {"stages", stages},
        {"stage_names", timeline_.stage_names}};
    return json_line(data);
  }

  void name_rank(int rank) {
    std::string stages;
    for (std::size_t s = 0; s < timeline_.stages.size(); ++s) {
      if (timeline_.stages[s].rank == rank)
        stages += fmt::format("{}{}", stages.empty() ? ": " : ", ", stage_names_[s]);
    }
    const int pid = pid_of(rank);
    begin_event();
    append("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"rank {}{}{}\"}}}},\n", pid, rank,
           lane_.name, stages);
    append("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"args\":{{\"sort_index\":{}}}}}", pid, pid - 1);
    for (std::size_t i = 0; i < rows_[rank].rows.size(); ++i) {
      const RankRows::Row& row = rows_[rank].rows[i];
      const std::int64_t tid = first_tid_[rank] + static_cast<std::int64_t>(i);
      const std::string number = row.number == 0 ? "" : fmt::format(" {}", row.number + 1);
      append(",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}{}\"}}}}", pid,
             tid, stream_name(row.stream), number);
      append(",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
             pid, tid, i);
    }
  }

  void write_span(int rank, std::size_t index) {
    const Span& span = timeline_.ranks[rank].spans[index];
    const Action& action = span.action;
    const auto out = std::back_inserter(text_);
    begin_event();
    fmt::format_to(out, FMT_COMPILE("{{\"ph\":\"X\",\"name\":\"{}"), op_name(action.op));
    if (has_microbatch(action.op)) fmt::format_to(out, FMT_COMPILE(" mb {}"), action.microbatch);
    if (action.part != 0) fmt::format_to(out, FMT_COMPILE(" part {}"), action.part);
    fmt::format_to(out, FMT_COMPILE(", {}\",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":"), stage_names_[action.stage],
                   stream_name(span.stream), pid_of(rank), tid_of(rank, index));
    const std::int64_t start = nanoseconds_of(span.start), end = nanoseconds_of(span.end);
    const std::int64_t duration = duration_within(start, end);
    append_microseconds(text_, start);
    text_.append(std::string_view(",\"dur\":"));
    append_microseconds(text_, duration);
    if (duration != end - start || !is_said_exactly(span.start) || !is_said_exactly(span.end)) {
      fmt::format_to(out, FMT_COMPILE(",\"{}\":[{},{}]"), kExactTimes, span.start.count(), span.end.count());
    }
    fmt::format_to(out, FMT_COMPILE(",\"cname\":\"{}\",\"args\":{{\"op\":\"{}\",\"stage\":{}"),
                   kColors[static_cast<std::size_t>(action.op)], op_name(action.op), action.stage);
    if (has_microbatch(action.op)) fmt::format_to(out, FMT_COMPILE(",\"microbatch\":{}"), action.microbatch);
    if (action.part != 0) fmt::format_to(out, FMT_COMPILE(",\"part\":{}"), action.part);
    if (action.overlaps_next) text_.append(std::string_view(",\"overlaps_next\":true"));
    if (span.critical) text_.append(std::string_view(",\"critical\":true"));
    text_.append(std::string_view("}}"));
  }

  void write_memory(int rank, std::string_view counter, const MemorySample& sample) {
    begin_event();
    fmt::format_to(std::back_inserter(text_), FMT_COMPILE("{{\"ph\":\"C\",\"name\":\"{}\",\"pid\":{},\"ts\":"), counter,
                   pid_of(rank));
    append_microseconds(text_, nanoseconds_of(sample.time));
    if (!is_said_exactly(sample.time))
      fmt::format_to(std::back_inserter(text_), FMT_COMPILE(",\"{}\":[{}]"), kExactTimes, sample.time.count());
    fmt::format_to(std::back_inserter(text_), FMT_COMPILE(",\"args\":{{\"bytes\":{}}}}}"), sample.bytes);
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
    begin_event();
    fmt::format_to(
        std::back_inserter(text_),
        FMT_COMPILE("{{\"ph\":{},\"cat\":\"message\",\"name\":\"message\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":"),
        phase, arrows_, pid_of(rank), tid);
    append_microseconds(text_, nanoseconds_of(time));
    text_.append(std::string_view("}"));
  }

  std::int64_t tid_of(int rank, std::size_t index) const { return first_tid_[rank] + rows_[rank].row[index]; }

  const Timeline& timeline_;
  const Lane lane_;
  Schedule schedule_;
  ActionIds ids_;
  ActionTable table_;
  StageNeighbors neighbors_;
  std::vector<std::string> stage_names_;  ///< [stage] as it stands inside a JSON string
  std::vector<RankRows> rows_;            ///< [rank]
  std::vector<std::int64_t> first_tid_;   ///< [rank]
  Text text_;
  bool first_event_ = true;
  std::int64_t next_thread_ = 0;
  std::int64_t arrows_ = 0;
};

}  // namespace

std::int64_t nanoseconds_of(SimTime time) {
  return std::chrono::round<std::chrono::nanoseconds>(time).count();
}

std::string memory_counter_name(MemoryKind kind) {
  return fmt::format("{}: {}", kMemoryCounter, memory_kind_name(kind));
}

std::string write_chrome_trace(const Timeline& timeline) {
  return Writer(timeline).write();
}

std::string write_compared_trace(const Timeline& predicted, const Timeline& measured) {
  Writer above(predicted, {.number = 0, .count = 2, .name = " predicted"});
  std::string text = above.events();
  Writer below(measured, {.number = 1,
                          .count = 2,
                          .name = " measured",
                          .first_thread = above.next_thread(),
                          .first_arrow = above.next_arrow()});
  const std::string events = below.events();
  if (!text.empty() && !events.empty()) text += ",\n";
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", text + events);
}

}}  // namespace plumb::traces
