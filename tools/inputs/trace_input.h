#pragma once
// Chrome traces, ours and others'.

#include <string>

#include "traces/chrome/chrome_trace.h"

namespace plumb { inline namespace tools {

/// Throws InputError with the file and the place of a fault, or with what the file is instead.
ChromeTrace trace_input(const std::string& file);

}}  // namespace plumb::tools
