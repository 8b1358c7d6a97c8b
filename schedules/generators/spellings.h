#pragma once
// Knows the names that papers and frameworks give to the catalogue's schedules, and the published schedules that it
// does not have.

#include <string_view>

namespace plumb { inline namespace schedules {

/// Returns the catalogue's name of a schedule under any spelling: case, '-', '_', blanks, '.' and '/' do not matter,
/// and the names of papers and frameworks ("1F1B-Int", "ZBVZeroBubble", "F-then-B") are known. Returns an empty string
/// if there is none.
std::string_view schedule_spelled(std::string_view text);

/// Returns one clause about a published schedule that the catalogue does not have under this spelling: how it differs
/// and which one comes nearest. Returns an empty string if nothing is known of it.
std::string_view schedule_not_held(std::string_view text);

}}  // namespace plumb::schedules
