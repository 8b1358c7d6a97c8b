#pragma once
// The `--costs` option: what one chunk costs when there is no model to ask.
//
//   parse_costs("f=1,i=1,w=1,c=0.25,unit=ms")
//   parse_costs("f=1:1:2:1,b=2")               one entry a stage

#include <limits>
#include <string>
#include <string_view>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace tools {

struct TimeUnit {
  std::string name = "s";
  double seconds = 1;
};

struct CostsOption {
  ChunkCosts chunk;             ///< in seconds
  TimeUnit unit;                ///< of what was read, and of printed tables
  bool whole_backward = false;  ///< b= was given
  double message_bytes = 0;     ///< of every message; 0: only the hop's latency counts
  double bytes_per_second = std::numeric_limits<double>::infinity();  ///< of every hop
  double host_moves = 0;  ///< OFFLOADs and RELOADs that the host's memory carries at full speed; 0: however many
};

/// Keys f, i, w, b, r, o, x, u, g, c, unit (s, ms, us, ns, ps), mib (of a message), gb_per_s (of a hop) and host (moves
/// at a time). Throws SpecError naming the entry: unknown key (with the nearest known), twice, not a number of 0 or
/// more, an unknown unit, a message size without a bandwidth or the reverse.
CostsOption parse_costs(std::string_view text);

/// The table for a schedule. Throws SpecError if whole backwards are priced but the schedule splits them, or a list of
/// costs does not fit its stages.
CostTable costs_for(const CostsOption& option, const Schedule& schedule);

}}  // namespace plumb::tools
