#pragma once
// SIGINT and SIGTERM end a run behind the step under way, so that it keeps its results.

#include <string>

namespace plumb { inline namespace tools {

/// While an object of this class lives, the first SIGINT or SIGTERM is noted and reported on stderr (by the first of
/// several processes), and the second ends the process at once. A signal that was ignored stays ignored. There is one
/// object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns true if a signal has come. Any thread may ask.
  bool has_come() const;

  /// Return the signal's name, "SIGINT", and the exit code that shells expect of it: 128 + its number, 130 or 143.
  std::string name() const;
  int exit_code() const;
};

}}  // namespace plumb::tools
