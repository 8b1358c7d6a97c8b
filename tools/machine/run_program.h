#pragma once
// Another program of this machine, asked one question.

#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace tools {

struct ProgramAnswer {
  std::string text;  ///< what it wrote on stdout
  std::string why;   ///< that there is no answer, in a sentence; empty if there is one
};

/// words: its name, found on PATH, and arguments. What does not end within `patience` is killed.
ProgramAnswer run_program(const std::vector<std::string>& words, Seconds patience);

}}  // namespace plumb::tools
