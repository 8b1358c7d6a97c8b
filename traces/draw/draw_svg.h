#pragma once
// Draws timelines as a picture (SVG): the panels stand one below the other on one time axis, with a row for each rank,
// in the manner of the papers' figures. A prediction above its measurement shows at a glance where they part.

#include <string>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// Returns a self-contained SVG document, 1000 units wide. Compute actions are boxes coloured by operation, lighter for
/// later chunks of a rank, with their micro-batch inside where it fits. An overlapped pair is one box of two halves, as
/// DualPipe's authors draw it, and idle time is hatched. Messages and collectives are not drawn. The legend has what is
/// there. Each panel begins at its timeline's first compute action. Deterministic.
std::string draw_svg(const std::vector<Timeline>& panels);

}}  // namespace plumb::traces
