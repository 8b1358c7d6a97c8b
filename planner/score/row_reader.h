#pragma once
// A published row while it is being read, for the readers of its parts: row_cluster.h, row_layout.h, row_training.h.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/row_fields.h"
#include "planner/score/score_library.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {

/// The reason why a row cannot be asked. It is thrown by the readers of a row's parts, and map_row() catches it.
struct Unmapped {
  std::string reason;
};

inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

/// Returns a count that a row prints; a count that no run can have is the row's fault.
inline std::optional<std::int64_t> printed_count(const nlohmann::json& row, std::string_view path, std::int64_t most) {
  const auto count = integer_at(row, path);
  if (count && (*count < 1 || *count > most))
    throw Unmapped{fmt::format("{} is {}, which no run can have", path, *count)};
  return count;
}

/// A row while it is being mapped.
struct RowReader {
  const ScoreLibrary& library;
  const nlohmann::json& row;
  const SourceMapping* mapping;
  std::vector<std::string> assumptions;

  std::optional<std::int64_t> integer(std::string_view path) const { return integer_at(row, path); }
  std::optional<std::int64_t> count(std::string_view path) const {
    return printed_count(row, path, std::numeric_limits<std::int32_t>::max());
  }
  std::string text(std::string_view path) const { return text_at(row, path); }
  int degree(std::string_view path) const { return static_cast<int>(printed_count(row, path, kMostRanks).value_or(1)); }
};

inline const nlohmann::json& preset_of(const std::map<std::string, nlohmann::json>& presets, const std::string& name,
                                       std::string_view what) {
  const auto found = presets.find(name);
  if (found == presets.end()) throw SpecError(fmt::format("there is no {} preset \"{}\"", what, name));
  return found->second;
}

/// Returns the preset with the figures that stand under `part` in the overrides.
inline nlohmann::json overridden(const ScoreLibrary& library, nlohmann::json spec, std::string_view part) {
  const std::string prefix = std::string(part) + ".";
  for (const auto& [path, value] : library.overrides) {
    if (path.starts_with(prefix)) set_at(spec, std::string_view(path).substr(prefix.size()), value);
  }
  return spec;
}

/// Makes a value of a row's own words: where it cannot be made, the row is at fault.
template <class Make>
auto of_row(const Make& make) {
  try {
    return make();
  } catch (const SpecError& error) {
    throw Unmapped{error.what()};
  }
}

}}  // namespace plumb::planner
