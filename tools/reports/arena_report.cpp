#include "tools/reports/arena_report.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

constexpr auto kStreamNames =
    std::to_array<const char*>({"compute", "send_activation", "send_gradient", "reduce", "copy", "exchange",
                                "receive_activation", "receive_gradient"});
static_assert(kStreamNames.size() == kDeviceStreamCount);

struct RankCounts {
  std::int64_t buffers = 0;
  std::array<std::int64_t, kDeviceStreamCount> calls{};
};

std::vector<RankCounts> counts_of(const DeviceProgram& program) {
  std::vector<RankCounts> counts(program.arena_bytes.size());
  for (const DeviceBuffer& buffer : program.buffers) ++counts[static_cast<std::size_t>(buffer.rank)].buffers;
  for (const DeviceCall& call : program.calls)
    ++counts[static_cast<std::size_t>(call.rank)].calls[static_cast<std::size_t>(call.stream)];
  return counts;
}

}  // namespace

nlohmann::ordered_json arena_json(const DeviceProgram& program) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  const std::vector<RankCounts> counts = counts_of(program);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    nlohmann::ordered_json calls;
    for (std::size_t stream = 0; stream < kStreamNames.size(); ++stream)
      calls[kStreamNames[stream]] = counts[rank].calls[stream];
    ranks.push_back({{"rank", rank},
                     {"arena_bytes", program.arena_bytes[rank]},
                     {"live_bytes", program.live_bytes[rank]},
                     {"buffers", counts[rank].buffers},
                     {"calls", calls}});
  }
  return {{"events", event_count(program)}, {"ranks", ranks}};
}

std::string arena_text(const DeviceProgram& program) {
  const std::vector<RankCounts> counts = counts_of(program);
  TextTable table{.head = {"rank", "arena", "live at once", "buffers"}};
  std::vector<std::size_t> streams;  // the streams that some rank uses
  for (std::size_t stream = 0; stream < kStreamNames.size(); ++stream) {
    bool used = false;
    for (const RankCounts& rank : counts) used = used || rank.calls[stream] > 0;
    if (!used) continue;
    streams.push_back(stream);
    table.head.push_back(fmt::format("calls of {}", kStreamNames[stream]));
  }
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {std::to_string(rank), bytes_text(static_cast<double>(program.arena_bytes[rank])),
           bytes_text(static_cast<double>(program.live_bytes[rank])), std::to_string(counts[rank].buffers)};
    for (const std::size_t stream : streams) row.push_back(std::to_string(counts[rank].calls[stream]));
  }
  return fmt::format("{}\n{} events order the streams; weights, gradients and optimizer state lie beside the arena\n",
                     to_text(table), event_count(program));
}

}}  // namespace plumb::tools
