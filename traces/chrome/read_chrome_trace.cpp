#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"
#include "schedules/limits.h"
#include "traces/chrome/chrome_trace.h"

namespace plumb { inline namespace traces {
namespace {

using nlohmann::json;

constexpr double kPicosecondsPerMicrosecond = 1e6;

/// The fields of one event, as far as either reader needs them. Ids may be numbers or strings.
struct Event {
  std::string phase;
  std::string name;
  json pid;
  json tid;
  double time_us = 0;
  double duration_us = 0;
  json exact;  ///< kExactTimes
  std::string category;
  json args;
};

struct Document {
  json other_data;
  std::vector<Event> events;
};

double number_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::string string_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// True for an event that one of the readers takes; no other event is kept.
bool is_read(const std::string& phase) {
  return phase == "X" || phase == "B" || phase == "E" || phase == "C" || phase == "M";
}

Event event_of(json& object) {
  Event event{.phase = string_of(object, "ph"),
              .name = string_of(object, "name"),
              .time_us = number_of(object, "ts"),
              .duration_us = number_of(object, "dur"),
              .category = string_of(object, "cat")};
  for (const auto& [key, member] :
       {std::pair{"pid", &event.pid}, {"tid", &event.tid}, {"args", &event.args}, {kExactTimes.data(), &event.exact}}) {
    if (const auto it = object.find(key); it != object.end()) *member = std::move(*it);
  }
  return event;
}

/// Parses the text event by event, so that the whole never stands in memory as a document.
Document parse(std::string_view text) {
  Document document;
  bool is_array = false;
  bool in_events = false;
  std::int64_t kept = 0;  // values since the last event
  const auto take_events = [&](int depth, json::parse_event_t what, json& parsed) {
    if (depth > kDeepestJson || ++kept > kMostJsonValues) {
      throw InputError(
          fmt::format("lists stand in each other more than {} deep, or more than {} values are no events: "
                      "no trace has so many",
                      kDeepestJson, kMostJsonValues));
    }
    if (depth == 0 && what == json::parse_event_t::array_start) is_array = in_events = true;
    if (depth == 1 && what == json::parse_event_t::key) in_events = parsed == "traceEvents";
    if (!in_events || what != json::parse_event_t::object_end || depth != (is_array ? 1 : 2)) return true;
    kept = 0;
    if (is_read(string_of(parsed, "ph"))) document.events.push_back(event_of(parsed));
    return false;
  };
  json rest;
  try {
    rest = json::parse(text, take_events);
  } catch (const json::exception&) {
    throw InputError(fmt::format("{}, or write the trace again", json_fault(text)));
  }
  if (!rest.is_array() && !(rest.is_object() && rest.contains("traceEvents"))) {
    throw InputError("the file holds JSON, but no trace: it has no traceEvents");
  }
  if (rest.is_object() && rest.contains("otherData")) document.other_data = rest["otherData"];
  return document;
}

SimTime time_of(double microseconds) {
  const double picoseconds = std::round(microseconds * kPicosecondsPerMicrosecond);
  if (!(std::abs(picoseconds) < static_cast<double>(kLatestMoment.count()))) {
    throw InputError(fmt::format("a time of {} us is beyond the {:.3g} s that can be read: give times in microseconds",
                                 microseconds, seconds(kLatestMoment)));
  }
  return SimTime{static_cast<std::int64_t>(picoseconds)};
}

// Reading our own traces.

std::string damage_of(const std::exception& error) {
  const bool is_ours = dynamic_cast<const InputError*>(&error) != nullptr;
  return is_ours ? error.what() : "a value is missing, or is not of its kind";
}

/// Returns the `which`th of an event's exact times, or the time shown in the trace if it has none.
SimTime exact_time(const Event& event, std::size_t which, double shown_us) {
  const SimTime shown = time_of(shown_us);
  if (event.exact.is_null()) return shown;
  constexpr SimTime kMostRounding{10'000};
  const SimTime exact{event.exact.at(which).get<std::int64_t>()};
  if (exact < shown - kMostRounding || exact > shown + kMostRounding)
    throw InputError(fmt::format("{} says {} ps of what is {} us", kExactTimes, exact.count(), shown_us));
  return exact;
}

Span span_of(const Event& event) {
  const std::optional<Op> op = op_from_name(string_of(event.args, "op"));
  if (!op) throw InputError(fmt::format("\"{}\" has no operation: {}", event.name, json_line(event.args)));
  Span span{.start = exact_time(event, 0, event.time_us), .action = {.op = *op}};
  span.end = event.exact.is_null() ? span.start + time_of(event.duration_us)
                                   : exact_time(event, 1, event.time_us + event.duration_us);
  span.action.stage = event.args.at("stage").get<std::int32_t>();
  span.action.microbatch = event.args.value("microbatch", kNoMicrobatch);
  span.action.part = event.args.value("part", std::int16_t{0});
  span.action.overlaps_next = event.args.value("overlaps_next", false);
  span.critical = event.args.value("critical", false);
  span.stream = stream_of(*op);
  for (const Stream stream : {Stream::kCompute, Stream::kSend, Stream::kReceive, Stream::kCollective}) {
    if (event.category == stream_name(stream)) span.stream = stream;
  }
  return span;
}

std::vector<MemorySample>& samples_of(RankTimeline& rank, std::string_view counter) {
  if (counter == kMemoryCounter) return rank.memory;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (counter == memory_counter_name(static_cast<MemoryKind>(kind))) return rank.memory_by_kind[kind];
  }
  throw InputError(fmt::format("\"{}\" is no counter of ours", counter));
}

void take_event(Timeline& timeline, const Event& event) {
  if (event.phase != "X" && event.phase != "C") return;
  RankTimeline& rank = timeline.ranks.at(event.pid.get<std::size_t>() - 1);
  if (event.phase == "C") {
    samples_of(rank, event.name)
        .push_back({.time = exact_time(event, 0, event.time_us), .bytes = event.args.at("bytes").get<std::int64_t>()});
    return;
  }
  rank.spans.push_back(span_of(event));
  if (static_cast<std::size_t>(rank.spans.back().action.stage) >= timeline.stages.size()) {
    throw InputError(fmt::format("there is no stage {}", rank.spans.back().action.stage));
  }
}

Timeline timeline_of(const Document& document) {
  Timeline timeline;
  const json& data = document.other_data;
  try {
    timeline.title = data.at("title").get<std::string>();
    timeline.source = data.at("source") == "measured" ? Timeline::Source::kMeasured : Timeline::Source::kPredicted;
    timeline.microbatches = data.at("microbatches").get<int>();
    timeline.ranks.resize(data.at("ranks").get<std::size_t>());
    timeline.stage_names = data.at("stage_names").get<std::vector<std::string>>();
    for (const json& place : data.at("stages")) {
      timeline.stages.push_back({.rank = place.at(0), .model_part = place.at(1), .lane = place.at(2)});
      const int rank = timeline.stages.back().rank;
      if (rank < 0 || rank >= static_cast<int>(timeline.ranks.size()))
        throw InputError(fmt::format("there is no rank {}", rank));
    }
  } catch (const std::exception& error) {
    throw InputError(fmt::format("otherData: the trace calls itself Plumb's, but is damaged ({}); write it again",
                                 damage_of(error)));
  }
  std::size_t number = 0;
  for (const Event& event : document.events) {
    ++number;
    try {
      take_event(timeline, event);
    } catch (const std::exception& error) {
      throw InputError(fmt::format("event {}: the trace calls itself Plumb's, but is damaged ({}); write it again",
                                   number, damage_of(error)));
    }
  }
  return timeline;
}

// Reading anybody's traces.

std::string id_text(const json& id) {
  return id.is_string() ? id.get<std::string>() : id.is_null() ? "0" : json_line(id);
}

/// Sorts numbers before names, each in its order.
using RowKey = std::pair<json, json>;

std::vector<ForeignRow> foreign_rows(const Document& document) {
  std::map<json, std::string> processes;
  std::map<RowKey, std::string> threads;
  std::map<RowKey, ForeignRow> rows;
  std::map<RowKey, std::vector<std::pair<std::string, double>>> begun;
  double first_us = std::numeric_limits<double>::infinity();
  for (const Event& event : document.events) {
    if (event.phase == "X" || event.phase == "B") first_us = std::min(first_us, event.time_us);
  }
  const auto since_first = [first_us](double time_us) { return time_of(std::max(0.0, time_us - first_us)); };
  for (const Event& event : document.events) {
    const RowKey key{event.pid, event.tid};
    if (event.phase == "M") {
      if (event.name == "process_name") processes[event.pid] = string_of(event.args, "name");
      if (event.name == "thread_name") threads[key] = string_of(event.args, "name");
    } else if (event.phase == "X") {
      rows[key].spans.push_back(
          {event.name, since_first(event.time_us), since_first(event.time_us + event.duration_us)});
    } else if (event.phase == "B") {
      begun[key].emplace_back(event.name, event.time_us);
    } else if (event.phase == "E" && !begun[key].empty()) {
      const auto [name, start_us] = begun[key].back();
      begun[key].pop_back();
      rows[key].spans.push_back({name, since_first(start_us), since_first(event.time_us)});
    }
  }
  std::vector<ForeignRow> result;
  for (auto& [key, row] : rows) {
    const auto process = processes.find(key.first);
    const auto thread = threads.find(key);
    row.process = process != processes.end() ? process->second : id_text(key.first);
    row.thread = thread != threads.end() ? thread->second : id_text(key.second);
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace

ChromeTrace read_chrome_trace(std::string_view text) {
  const Document document = parse(text);
  ChromeTrace trace;
  if (document.other_data.is_object() && document.other_data.contains("plumb_timeline")) {
    trace.timeline = timeline_of(document);
  } else {
    trace.rows = foreign_rows(document);
  }
  return trace;
}

}}  // namespace plumb::traces
