#pragma once
// What a person reads: answers go to stdout, notes and progress to stderr, so that `--json` keeps stdout to one
// document.

#include <string_view>

#include "traces/draw.h"

namespace plumb {

/// As wide as the terminal and in colour; 120 columns and plain where stdout is none.
DrawOptions terminal_draw_options();

/// To stdout as it is.
void print_answer(std::string_view text);

/// To stderr, as a line of its own.
void print_note(std::string_view text);

/// Progress of a long piece of work: a bar that is redrawn where stderr is a terminal, nothing where it is not.
class Progress {
 public:
  explicit Progress(std::string_view what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// `share` from 0 to 1.
  void update(double share);

 private:
  std::string_view what_;
  bool terminal_;
  int drawn_ = -1;
};

}  // namespace plumb
