#pragma once
// How much slower ranks compute beside collectives, for people and for programs.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/measure/slowdown_sample.h"

namespace plumb { inline namespace tools {

/// "collective_slowdown" is null where nothing was computed beside the collective.
nlohmann::ordered_json slowdown_json(const SlowdownSample& sample);

/// A table, a row a sample, and what of it a cluster says: the first's. `format` is that of the products. Empty if
/// there are none.
std::string slowdown_text(const std::vector<SlowdownSample>& samples, std::string_view format);

}}  // namespace plumb::tools
