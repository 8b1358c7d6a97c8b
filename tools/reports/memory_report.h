#pragma once
// Where a rank's bytes go, as JSON and as text.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/memory/memory_holders.h"
#include "traces/timeline.h"

namespace plumb { inline namespace tools {

/// {"peak_bytes", "peak_at_s", "running", "bytes_by_kind": {"parameters": ..., ...}, "holders": [...]}: every kind,
/// those that do not occur with 0; "running" is null while the rank idles.
nlohmann::ordered_json memory_peak_json(const MemoryPeak& peak);

/// {"parameters": [[time_s, bytes], ...], ...}: a pair where the bytes change; no pairs for what is never held.
nlohmann::ordered_json memory_over_time_json(const MemorySamplesByKind& by_kind);

/// A row a rank with its peak, and a column for each kind that some rank holds at its peak.
std::string memory_peaks_text(const std::vector<MemoryPeak>& peaks);

/// Of one rank: a line for each holder, at most `most` of them, the rest in one.
std::string memory_holders_text(const MemoryPeak& peak, std::size_t most);

}}  // namespace plumb::tools
