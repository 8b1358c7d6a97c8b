#pragma once
// The slowdown of computing beside collectives, as JSON and as a table.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/measure/slowdown_sample.h"

namespace plumb { inline namespace tools {

/// Returns the sample as JSON; "collective_slowdown" is null where nothing was computed beside the collective.
nlohmann::ordered_json slowdown_json(const SlowdownSample& sample);

/// Returns a table with a row for each sample, and the line that puts the first sample's slowdown into a cluster file.
/// `format` is the number format of the products. The text is empty if there are no samples.
std::string slowdown_text(const std::vector<SlowdownSample>& samples, std::string_view format);

}}  // namespace plumb::tools
