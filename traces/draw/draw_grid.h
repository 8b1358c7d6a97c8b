#pragma once
// A schedule as a grid, a row a rank and a cell an action, in list order: what can be drawn of a schedule that does not
// run, with the faulty cells marked.
//
//   rank 0 │  0F0    0F1  >0B1<   0B0
//   rank 1 │  1F0    1B0   1F1    1B1

#include <string>
#include <vector>

#include "schedules/rules/validate.h"
#include "schedules/schedule.h"
#include "traces/draw/draw.h"

namespace plumb { inline namespace traces {

/// The grid in the terminal. Cells that a violation names stand between > and < (and in red with colour). Rows that
/// are longer than the width begin close to the earliest fault; "…" says where actions are left out. Ends with a line
/// for each of the first few violations.
std::string draw_grid(const Schedule& schedule, const std::vector<Violation>& violations,
                      const DrawOptions& options = {});

/// The grid as a self-contained SVG document, a column a position: cells coloured by operation, faulty ones outlined
/// in red with the violation as their tooltip and below the grid. Deterministic.
std::string draw_grid_svg(const Schedule& schedule, const std::vector<Violation>& violations);

}}  // namespace plumb::traces
