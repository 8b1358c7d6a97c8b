#pragma once
// The memory of ranks by kind and holder, as JSON and as text.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/memory/memory_holders.h"
#include "traces/timeline.h"

namespace plumb { inline namespace tools {

/// Returns {"peak_bytes", "peak_at_s", "running", "bytes_by_kind": {"parameters": ..., ...}, "holders": [...]}. A kind
/// that does not occur has 0, and "running" is null while the rank idles.
nlohmann::ordered_json memory_peak_json(const MemoryPeak& peak);

/// Returns {"parameters": [[time_s, bytes], ...], ...}, with a pair wherever the bytes change. A kind that is never
/// held has no pairs.
nlohmann::ordered_json memory_over_time_json(const MemorySamplesByKind& by_kind);

/// Returns a table with a row for each rank's peak, and a column for each kind that some rank holds at its peak.
std::string memory_peaks_text(const std::vector<MemoryPeak>& peaks);

/// Returns a table of one rank's holders: a line for each of the first `most`, and one line for all others.
std::string memory_holders_text(const MemoryPeak& peak, std::size_t most);

}}  // namespace plumb::tools
