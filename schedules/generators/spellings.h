#pragma once
// What papers and frameworks call the schedules of the catalogue, and what is known of those that it does not have.

#include <string_view>

namespace plumb { inline namespace schedules {

/// The catalogue's name of a schedule under any spelling: case, '-', '_', blanks, '.' and '/' do not matter, and the
/// names of papers and frameworks ("1F1B-Int", "ZBVZeroBubble", "F-then-B") are known. Empty if there is none.
std::string_view schedule_spelled(std::string_view text);

/// Of a published schedule that the catalogue does not have under this spelling: how it differs and what comes nearest,
/// one clause. Empty if nothing is known of it.
std::string_view schedule_not_held(std::string_view text);

}}  // namespace plumb::schedules
