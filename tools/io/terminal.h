#pragma once
// The terminals that stdout and stderr may be.

#include <optional>

#include "traces/draw/draw.h"

namespace plumb { inline namespace tools {

/// Returns the columns of the terminal that answers, or notes, go to; nothing where they go to none.
std::optional<int> terminal_width();
std::optional<int> note_width();

/// Returns the width of the terminal, in colour unless NO_COLOR (no-color.org) is set or the terminal is dumb; 120
/// columns without colour where stdout is no terminal.
DrawOptions terminal_draw_options();

/// True if a person watches stderr on a terminal that can redraw a line.
bool shows_progress();

}}  // namespace plumb::tools
