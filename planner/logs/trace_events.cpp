#include "planner/logs/trace_events.h"

#include <istream>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace planner {

bool for_each_event(std::istream& stream, const std::function<void(const nlohmann::json&)>& take) {
  using nlohmann::json;
  bool is_array = false, in_events = false;
  const auto callback = [&](int depth, json::parse_event_t what, json& parsed) {
    if (depth == 0 && what == json::parse_event_t::array_start) is_array = in_events = true;
    if (depth == 1 && what == json::parse_event_t::key) in_events = parsed == "traceEvents";
    if (what != json::parse_event_t::object_end || depth != (is_array ? 1 : 2)) return true;
    if (in_events) take(parsed);
    return false;
  };
  return !json::parse(stream, callback).is_discarded();
}

}}  // namespace plumb::planner
