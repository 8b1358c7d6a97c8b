#pragma once
// Another program of this machine is run for its output.

#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace tools {

struct ProgramAnswer {
  std::string text;  ///< the program's output on stdout
  std::string why;   ///< the reason if there is no answer, as a sentence; empty if there is one
};

/// Runs a program and returns its answer. `words` are its name, which is found on PATH, and its arguments. A program
/// that does not end within `patience` is killed.
ProgramAnswer run_program(const std::vector<std::string>& words, Seconds patience);

}}  // namespace plumb::tools
