#pragma once
// Every verb ends here with a mistake in the input, with a run that failed, or with any other exception.

#include <exception>

namespace plumb { inline namespace tools {

/// Prints the error as one sentence (sentence_of) and returns the exit code. Processes that were started together all
/// find the same mistakes in their input, and the first one prints them. A failure of the replay is printed by the
/// process that saw it. Where the processes have joined, all of them end here.
int report_fault(const std::exception& error);

}}  // namespace plumb::tools
