#pragma once
// Draws a schedule as a grid in list order: each rank is a row, each action a cell, and the faulty cells are marked. A
// schedule that does not run can be drawn so.
//
//   rank 0 │  0F0    0F1  >0B1<   0B0
//   rank 1 │  1F0    1B0   1F1    1B1

#include <string>
#include <vector>

#include "schedules/rules/validate.h"
#include "schedules/schedule.h"
#include "traces/draw/draw.h"

namespace plumb { inline namespace traces {

/// Returns the grid for the terminal. Cells that a violation names stand between > and < (and in red with colour). Rows
/// that are longer than the width begin close to the earliest fault; "…" says where actions are left out. A line for
/// each of the first few violations follows.
std::string draw_grid(const Schedule& schedule, const std::vector<Violation>& violations,
                      const DrawOptions& options = {});

/// Returns the grid as a self-contained SVG document with a column for each position. Cells are coloured by operation;
/// faulty ones are outlined in red, with the violation as their tooltip and below the grid. Deterministic.
std::string draw_grid_svg(const Schedule& schedule, const std::vector<Violation>& violations);

}}  // namespace plumb::traces
