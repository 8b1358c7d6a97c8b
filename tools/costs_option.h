#pragma once
// The `--costs` option: what one chunk costs when there is no model to ask.
//
//   parse_costs("f=1,i=1,w=1,c=0.25,unit=ms")
//   parse_costs("f=1:1:2:1,b=2")               one entry a stage

#include <string>
#include <string_view>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb {

struct TimeUnit {
  std::string name = "s";
  double seconds = 1;
};

struct CostsOption {
  ChunkCosts chunk;             ///< in seconds
  TimeUnit unit;                ///< of what was read, and of printed tables
  bool whole_backward = false;  ///< b= was given
};

/// Keys f, i, w, b, r, o, c and unit (s, ms, us, ns, ps). Throws SpecError naming the entry: unknown key (with the
/// nearest known), twice, not a number of 0 or more, an unknown unit.
CostsOption parse_costs(std::string_view text);

/// The table for a schedule. Throws SpecError if whole backwards are priced but the schedule splits them, or a list of
/// costs does not fit its stages.
CostTable costs_for(const CostsOption& option, const Schedule& schedule);

}  // namespace plumb
