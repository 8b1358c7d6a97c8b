#include "planner/logs/trace_events.h"

#include <istream>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace planner {

bool for_each_event(std::istream& stream, const std::function<void(const nlohmann::json&)>& take) {
  using nlohmann::json;
  using Event = json::parse_event_t;
  bool is_container = false, is_array = false, in_events = false;
  // Returns what is kept: the events, each until it is taken, and nothing that stands beside them.
  const auto callback = [&](int depth, Event what, json& parsed) {
    if (depth == 0 && what == Event::array_start) is_array = in_events = true;
    is_container = is_container || what == Event::array_start || what == Event::object_start;
    const int depth_of_event = is_array ? 1 : 2;
    if (depth == 0) return what != Event::value;
    if (!is_array && depth == 1 && what == Event::key) return in_events = parsed == "traceEvents";
    if (!is_array && depth == 1 && (what == Event::array_start || what == Event::value)) return in_events;
    if (depth > depth_of_event) return true;
    if (what == Event::object_end && depth == depth_of_event) {
      if (in_events) take(parsed);
      return false;
    }
    return what == Event::array_end || (what == Event::object_start && depth == depth_of_event && in_events);
  };
  return !json::parse(stream, callback).is_discarded() && is_container;
}

}}  // namespace plumb::planner
