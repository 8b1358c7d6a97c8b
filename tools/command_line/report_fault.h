#pragma once
// Every verb ends here after a mistake in the input, of a run that failed, and of every other exception.

#include <exception>

namespace plumb { inline namespace tools {

/// Says it in one sentence (sentence_of) and returns the exit code. Of several processes that were started together all
/// find the same mistakes in their input, and the first says them; what fails while they replay is said by who saw it.
/// Where they have joined, all of them end here.
int report_fault(const std::exception& error);

}}  // namespace plumb::tools
