#pragma once
// What else this machine is doing, to be said beside whatever was measured.

#include <string>

namespace plumb {

/// "load 1.5 on 2 cores": the mean number of runnable threads in the last minute.
std::string load_text();

/// "2026-11-22", in UTC.
std::string today();

}  // namespace plumb
