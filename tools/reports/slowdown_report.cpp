#include "tools/reports/slowdown_report.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

nlohmann::ordered_json slowdown_json(const SlowdownSample& sample) {
  const std::optional<double> slowdown = slowdown_of(sample);
  return {{"collective", collective_name(sample.op)},
          {"ranks", sample.members},
          {"bytes", sample.bytes},
          {"product_edge", sample.product_edge},
          {"compute_alone_s", sample.alone.count()},
          {"compute_beside_s", sample.beside.count()},
          {"collective_alone_s", sample.collective_alone.count()},
          {"collective_beside_s", sample.collective.count()},
          {"repeats", sample.repeats},
          {"collective_slowdown", slowdown ? nlohmann::ordered_json(*slowdown) : nlohmann::ordered_json(nullptr)}};
}

std::string slowdown_text(const std::vector<SlowdownSample>& samples, std::string_view format) {
  if (samples.empty()) return {};
  TextTable table{.head = {"compute beside", "size", "products", "alone", "beside", "collective alone", "beside",
                           "collective_slowdown"}};
  for (const SlowdownSample& sample : samples) {
    const std::optional<double> slowdown = slowdown_of(sample);
    table.rows.push_back({std::string(collective_name(sample.op)), fmt::format("{} KiB", sample.bytes / 1024),
                          fmt::format("{0} x {0}, {1}", sample.product_edge, format),
                          duration_text(sample.alone.count()), duration_text(sample.beside.count()),
                          duration_text(sample.collective_alone.count()), duration_text(sample.collective.count()),
                          slowdown ? fmt::format("{:.2f}", *slowdown) : "nothing was computed meanwhile"});
  }
  std::string text = to_text(table);
  if (const std::optional<double> first = slowdown_of(samples.front()))
    text += fmt::format("\n\"collective_slowdown\": {:.2f} in the \"device\" of a cluster says so\n", *first);
  return text;
}

}}  // namespace plumb::tools
