#pragma once
// The `--costs` option gives the costs of one chunk where there is no model to price.
//
//   parse_costs("f=1,i=1,w=1,c=0.25,unit=ms")
//   parse_costs("f=1:1:2:1,b=2")               one entry a stage, or one a model part

#include <string>
#include <string_view>
#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace tools {

struct TimeUnit {
  std::string name = "s";
  double seconds = 1;
};

struct CostsOption {
  ChunkCosts chunk;             ///< in seconds
  TimeUnit unit;                ///< unit of the given times, and of printed tables
  bool whole_backward = false;  ///< b= was given
  /// Latency of the link from each rank to the next one; empty: chunk.hop_latency, which is the longest of
  /// them.
  std::vector<Seconds> link_latencies;
  std::vector<double> message_bytes;     ///< of every message, or of each part's; empty: only latencies count
  std::vector<double> bytes_per_second;  ///< of every hop, or of the link from each rank to the next one
  ActivationMemory memory;               ///< by part and by rank (or one for all); empty: activations are counted
  double host_moves = 0;  ///< OFFLOADs and RELOADs that the host's memory carries at full speed; 0: any number
};

/// Reads the keys f, i, w, b, r, o, x, u, g, c, unit (s, ms, us, ns, ps), mib (size of a message), gb_per_s (bandwidth
/// of a hop) and host (moves at a time). Throws SpecError with the entry if a key is unknown (with the nearest known
/// one) or given twice, a value is no number of 0 or more, the unit is unknown, or a message size comes without a
/// bandwidth or the reverse.
CostsOption parse_costs(std::string_view text);

/// Returns the cost table of a schedule. Throws SpecError if whole backwards are priced but the schedule
/// splits them, or a list of costs does not fit its stages, or one of links its ranks: the links between
/// neighbours, and perhaps that from the last rank to the first. Activations have their bytes where the option gives
/// them.
CostTable costs_for(const CostsOption& option, const Schedule& schedule);

}}  // namespace plumb::tools
