#pragma once
// A verb ends with an exit code, or with a mistake in the options that the parser cannot see.

#include <string>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

/// Exit codes of the tool.
enum ExitCode : int { kDone = 0, kInputFault = 1, kUsage = 2, kInfeasible = 3 };

/// An option has a value that cannot be read, goes with none of the others, or is missing. The text is one sentence.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

/// parse()'s value. What an option's text is refused with is a mistake of usage.
template <typename Parse>
auto read_option(Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw UsageError(error.what());
  }
}

}}  // namespace plumb::tools
