#pragma once
// Draws a timeline in the terminal, in the style of the papers' figures: each rank is a row, time runs from left to
// right.
//
//   rank 0 │0░░1░░            0▓▓▓▓▓   1▓▓▓▓▓
//   rank 1 │   0░░0▓▓▓▓▓1░░1▓▓▓▓▓
//   ░░ forward  ▓▓ backward  makespan 9 s  bubble 33.3 %
//
// A cell begins with its micro-batch ("3b" is micro-batch 3 of the rank's second chunk, "3.1" its second slice) and is
// filled by operation: ░ F, ▓ B, ▒ I, = W, ~ R, # OPTIMIZER_STEP; blanks are idle. With colour the fill is the
// background.

#include <string>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

struct DrawOptions {
  int width = 120;     ///< columns of the widest row
  bool color = false;  ///< use ANSI colours
};

/// Returns title, rows and a legend with makespan and bubble, each line ended by '\n'. No row is wider than the
/// options' width (less than 40 columns count as 40). Where the width allows, a column is a whole fraction of every
/// duration and nothing is rounded; otherwise a column shows the action that runs at its middle. Numbers are left out
/// where cells are too narrow for them. Messages and collectives are not drawn. The two actions of an overlapped pair
/// share their time, one behind the other.
std::string draw(const Timeline& timeline, const DrawOptions& options = {});

}}  // namespace plumb::traces
