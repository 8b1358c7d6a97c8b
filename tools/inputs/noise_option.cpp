#include "tools/inputs/noise_option.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/limits.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace tools {
namespace {

template <typename Number>
Number parse_number(std::string_view key, std::string_view text, std::string_view wanted) {
  const auto value = whole_number<Number>(text);
  if (!value) throw SpecError(fmt::format("--noise: {}={}: give {}", key, text, wanted));
  return *value;
}

Distribution parse_distribution(std::string_view text) {
  for (const Distribution d : {Distribution::kLognormal, Distribution::kNormal, Distribution::kGamma}) {
    if (text == distribution_name(d)) return d;
  }
  throw SpecError(fmt::format("--noise: dist={}: give lognormal, normal or gamma", text));
}

}  // namespace

NoiseSpec parse_noise(std::string_view text) {
  NoiseSpec noise;
  std::set<std::string, std::less<>> given;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      throw SpecError(fmt::format("--noise: \"{}\" has no value: write KEY=NUMBER, as in cv=0.05", entry));
    const std::string_view key = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    constexpr std::string_view kShare = "a share of the mean, as in 0.05";
    if (key == "cv") {
      noise.cv = parse_number<double>(key, value, kShare);
    } else if (key == "rank_cv") {
      noise.rank_cv = parse_number<double>(key, value, kShare);
    } else if (key == "comm_cv") {
      noise.communication_cv = parse_number<double>(key, value, kShare);
    } else if (key == "dist") {
      noise.distribution = parse_distribution(value);
    } else if (key == "runs") {
      noise.runs = parse_number<int>(key, value, fmt::format("a whole number of runs, at most {}", kMostNoiseRuns));
      if (noise.runs < 1) throw SpecError(fmt::format("--noise: runs={}: give 1 or more", noise.runs));
      if (noise.runs > kMostNoiseRuns)
        throw SpecError(fmt::format("--noise: runs={} is too many: give at most {}", noise.runs, kMostNoiseRuns));
    } else if (key == "seed") {
      noise.seed = parse_number<std::uint64_t>(key, value, "a whole number of 0 or more");
    } else {
      throw SpecError(fmt::format("--noise: \"{}\" is not known: {}", key,
                                  did_you_mean(key, {"cv", "rank_cv", "comm_cv", "dist", "runs", "seed"})));
    }
    if (!given.emplace(key).second) throw SpecError(fmt::format("--noise: {} is given twice: keep one", key));
  }
  if (!given.contains("cv") && !given.contains("rank_cv") && !given.contains("comm_cv"))
    throw SpecError("--noise: nothing varies: give cv=, rank_cv= or comm_cv=");
  return noise;
}

}}  // namespace plumb::tools
