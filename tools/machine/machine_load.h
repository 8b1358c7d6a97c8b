#pragma once
// The load of this machine by other programs is printed beside measurements.

#include <optional>
#include <string>

#include "schedules/time.h"

namespace plumb { inline namespace tools {

/// Returns "load 1.5 on 2 cores", with the mean number of runnable threads in the last minute.
std::string load_text();

/// Mean number of cores that programs beside this process have used; 0.5 is half a core.
struct OtherPrograms {
  double cores = 0;  ///< used by other programs of this machine, and by its kernel
  double host = 0;   ///< taken away by the host of a virtual machine
};
class OtherProgramsClock {
 public:
  OtherProgramsClock();
  /// Returns the use since this clock was made, or nothing where the system does not tell it (no /proc/stat).
  std::optional<OtherPrograms> read() const;

 private:
  struct Reading {
    Seconds wall{0}, own{0}, all{0}, host{0};
  };
  static std::optional<Reading> now();

  std::optional<Reading> start_;
};

/// Returns today's date in UTC, "2026-11-22".
std::string today();

}}  // namespace plumb::tools
