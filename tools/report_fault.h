#pragma once
// What becomes of a mistake in the input, or of a run that failed.

#include "schedules/error.h"

namespace plumb { inline namespace tools {

/// Says it in one sentence and returns the exit code. Of several processes that were started together all find the same
/// mistakes in their input, and the first says them; what fails while they replay is said by who saw it. Where they
/// have joined, all of them end here.
int report_fault(const InputError& error);

}}  // namespace plumb::tools
