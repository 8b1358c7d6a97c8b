#pragma once
// The events of a trace in JSON, one after the other, so that a trace of gigabytes takes no more memory than an event.

#include <functional>
#include <iosfwd>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Calls `take` with each object of the array that the stream holds, or of the array "traceEvents" of its object. What
/// `take` throws is passed on. Returns false if the stream holds something else. Throws nlohmann::json::exception if
/// it is no JSON or is cut short.
bool for_each_event(std::istream& stream, const std::function<void(const nlohmann::json&)>& take);

}}  // namespace plumb::planner
