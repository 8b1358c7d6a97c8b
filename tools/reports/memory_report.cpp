#include "tools/reports/memory_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::string text_of(std::int64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

std::string key_of(MemoryKind kind) {
  std::string key(memory_kind_name(kind));
  std::ranges::replace(key, ' ', '_');
  return key;
}

/// Returns ascending numbers as "0-3, 7".
std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

ordered_json memory_peak_json(const MemoryPeak& peak) {
  ordered_json kinds = ordered_json::object();
  const BytesByKind bytes = bytes_by_kind(peak);
  for (int kind = 0; kind < kMemoryKindCount; ++kind) kinds[key_of(static_cast<MemoryKind>(kind))] = bytes[kind];
  ordered_json holders = ordered_json::array();
  for (const MemoryHolder& holder : peak.holders) {
    holders.push_back({{"kind", key_of(holder.kind)},
                       {"stage", holder.stage},
                       {"bytes", holder.bytes},
                       {"microbatches", holder.microbatches}});
  }
  return {{"peak_bytes", peak.bytes},
          {"peak_at_s", to_seconds(peak.time).count()},
          {"running", peak.running ? ordered_json(to_text(*peak.running)) : ordered_json(nullptr)},
          {"bytes_by_kind", kinds},
          {"holders", holders}};
}

ordered_json memory_over_time_json(const MemorySamplesByKind& by_kind) {
  ordered_json json = ordered_json::object();
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    ordered_json series = ordered_json::array();
    for (const MemorySample& sample : by_kind[kind]) series.push_back({to_seconds(sample.time).count(), sample.bytes});
    json[key_of(static_cast<MemoryKind>(kind))] = std::move(series);
  }
  return json;
}

std::string memory_peaks_text(const std::vector<MemoryPeak>& peaks) {
  TextTable table{.head = {"rank", "peak", "at", "running"}};
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    table.rows.push_back({std::to_string(r), text_of(peaks[r].bytes), duration_text(to_seconds(peaks[r].time).count()),
                          peaks[r].running ? to_text(*peaks[r].running) : "nothing"});
  }
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    const auto held = [kind](const MemoryPeak& peak) { return bytes_by_kind(peak)[kind]; };
    if (std::ranges::all_of(peaks, [&](const MemoryPeak& peak) { return held(peak) == 0; })) continue;
    table.head.emplace_back(memory_kind_name(static_cast<MemoryKind>(kind)));
    for (std::size_t r = 0; r < peaks.size(); ++r) table.rows[r].push_back(text_of(held(peaks[r])));
  }
  return to_text(table);
}

std::string memory_holders_text(const MemoryPeak& peak, std::size_t most) {
  TextTable table{.head = {"bytes", "kind", "stage", "micro-batches"}};
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < peak.holders.size(); ++i) {
    const MemoryHolder& holder = peak.holders[i];
    if (i >= most) {
      rest += holder.bytes;
      continue;
    }
    table.rows.push_back({text_of(holder.bytes), std::string(memory_kind_name(holder.kind)),
                          std::to_string(holder.stage), ranges_text(holder.microbatches)});
  }
  if (rest > 0) table.rows.push_back({text_of(rest), "all others", "", ""});
  return to_text(table);
}

}}  // namespace plumb::tools
