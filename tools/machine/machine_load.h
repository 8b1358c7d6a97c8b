#pragma once
// What else this machine is doing, to be said beside whatever was measured.

#include <optional>
#include <string>

#include "schedules/time.h"

namespace plumb { inline namespace tools {

/// "load 1.5 on 2 cores": the mean number of runnable threads in the last minute.
std::string load_text();

/// What programs beside this process have had since it was made, in cores; 0.5: half of one.
struct OtherPrograms {
  double cores = 0;  ///< programs of this machine, and its kernel
  double host = 0;   ///< taken away by the host of a virtual machine
};
class OtherProgramsClock {
 public:
  OtherProgramsClock();
  /// Nothing where the system does not tell (no /proc/stat).
  std::optional<OtherPrograms> read() const;

 private:
  struct Reading {
    Seconds wall{0}, own{0}, all{0}, host{0};
  };
  static std::optional<Reading> now();

  std::optional<Reading> start_;
};

/// "2026-11-22", in UTC.
std::string today();

}}  // namespace plumb::tools
