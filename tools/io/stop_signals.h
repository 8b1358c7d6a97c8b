#pragma once
// SIGINT and SIGTERM while something runs that can end early with what it has.

#include <string>

namespace plumb { inline namespace tools {

/// While one lives, the first SIGINT or SIGTERM is noted, and said on stderr (by the first of several processes); the
/// second ends the process at once, as any does without it. What was ignored stays ignored. There is one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns whether one has come; from any thread.
  bool has_come() const;

  /// Returns its name, "SIGINT", and the exit code that shells expect of it: 128 and its number, 130 or 143.
  std::string name() const;
  int exit_code() const;
};

}}  // namespace plumb::tools
