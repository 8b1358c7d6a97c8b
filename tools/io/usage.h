#pragma once
// A verb ends with an exit code, or throws for a mistake in the options that the parser cannot see.

#include <string>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

/// Exit codes of the tool.
enum ExitCode : int { kDone = 0, kInputFault = 1, kUsage = 2, kInfeasible = 3 };

/// An option has a value that cannot be read, does not go with the others, or is missing. The text is one sentence.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

/// Returns parse()'s value. Throws UsageError with the text of an InputError that parse() throws.
template <typename Parse>
auto read_option(Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw UsageError(error.what());
  }
}

}}  // namespace plumb::tools
