#include "tools/reports/alternatives_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/time_components.h"
#include "planner/partition/balanced_partition.h"
#include "planner/spec/layout_keys.h"
#include "planner/spec/short_layout.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr double kNoDifferencePct = 0.05;  ///< below which a table would print 0.0 %

/// Returns the keys of a layout's text that another one has not, each with its value: {"v=8", "zero=1"}.
std::vector<std::pair<std::string, std::string>> differing_keys(const Layout& layout, const Layout& other) {
  std::vector<std::pair<std::string, std::string>> keys;
  visit_layout_keys([&](std::string_view key, auto answer) {
    if (layout.*answer != other.*answer) keys.emplace_back(key, value_text(layout.*answer));
  });
  if (layout.split != other.split)
    keys.emplace_back("split", layout.split.empty() ? "the stack's" : runs_text(layout.split));
  return keys;
}

/// Returns what variants of a layout have in its place: "v=8|4, zero=1".
std::string differing_values(const Layout& layout, const std::vector<Layout>& variants) {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;  // [key]
  for (const Layout& variant : variants) {
    for (auto& [key, value] : differing_keys(variant, layout)) {
      auto known = std::ranges::find(values, key, [](const auto& entry) { return entry.first; });
      if (known == values.end()) known = values.insert(values.end(), {key, {}});
      if (std::ranges::find(known->second, value) == known->second.end()) known->second.push_back(value);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [key, others] : values) texts.push_back(fmt::format("{}={}", key, fmt::join(others, "|")));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// The part of the step that grows most from the best layout to another one.
struct Growth {
  TimeComponent component = TimeComponent::kBubble;
  Seconds seconds{0};
};

Growth largest_growth(const TimeComponents& before, const TimeComponents& after) {
  Growth largest;
  for (int i = 0; i < kTimeComponentCount; ++i) {
    const Seconds growth = after[i] - before[i];
    if (growth > largest.seconds) largest = {.component = static_cast<TimeComponent>(i), .seconds = growth};
  }
  return largest;
}

Growth largest_growth(const Pricing& pricing, const Evaluation& best, const Evaluation& other) {
  return largest_growth(time_components(pricing, best, step_time(best.simulation)),
                        time_components(pricing, other, step_time(other.simulation)));
}

std::string to_text(const Growth& growth) {
  return fmt::format("{} {}", component_name(growth.component), duration_text(growth.seconds.count()));
}

bool same_keys(const LayoutRequest& a, const LayoutRequest& b) {
  return answers_all(a, b) && answers_all(b, a);
}

double longer_pct(const Evaluation& best, const Evaluation& other) {
  return 100 * (step_time(other.simulation) / step_time(best.simulation) - 1);
}

}  // namespace

std::string growth_text(const SearchedSetting& of_best, const Evaluation& best, const SearchedSetting& of_other,
                        const Evaluation& other) {
  const Growth growth = largest_growth(time_components(of_best.pricing, best, step_time(best.simulation)),
                                       time_components(of_other.pricing, other, step_time(other.simulation)));
  return growth.seconds > Seconds{0} ? to_text(growth) : "";
}

std::string variants_text(const SearchResult& search) {
  std::string text;
  for (std::size_t row = 0; row < search.ranked.size(); ++row) {
    if (search.variants[row].empty()) continue;
    const std::string keys = differing_values(search.ranked[row].layout, search.variants[row]);
    const std::size_t count = search.variants[row].size();
    text += fmt::format("{}: {} ({} layout{})\n", row + 1, keys, count, count == 1 ? "" : "s");
  }
  return text.empty() ? "" : "\nlayouts of a row's degrees that take nearly the same:\n" + text;
}

std::string other_values_text(const Pricing& pricing, const SearchResult& search) {
  const Evaluation& best = search.ranked.front();
  TextTable table{.head = {"key", "step time", "longer by", "most of it", "the best layout with it"}};
  std::vector<std::string> unfit, alike;
  for (const OtherValue& other : search.other_values) {
    const std::string key = fmt::format("{}={}", other.key, other.value);
    if (!other.best) {
      unfit.push_back(other.missing_bytes == 0
                          ? key
                          : fmt::format("{} (by {})", key, bytes_text(static_cast<double>(other.missing_bytes))));
      continue;
    }
    if (std::abs(longer_pct(best, *other.best)) < kNoDifferencePct) {
      alike.push_back(fmt::format("{} ({})", key, short_text(other.best->layout)));
      continue;
    }
    const Growth growth = largest_growth(pricing, best, *other.best);
    table.rows.push_back({key, duration_text(step_time(other.best->simulation).count()),
                          fmt::format("{:.1f} %", longer_pct(best, *other.best)), to_text(growth),
                          short_text(other.best->layout)});
  }
  std::string text = "\nother values of each key, with all other keys free:\n" + to_text(table);
  if (!alike.empty()) text += fmt::format("no difference: {}\n", fmt::join(alike, ", "));
  if (!unfit.empty()) text += fmt::format("too large in every layout: {}\n", fmt::join(unfit, ", "));
  return text;
}

std::string conflicts_text(const std::vector<Rejection>& conflicts) {
  std::vector<std::vector<const Rejection*>> kinds;
  for (const Rejection& conflict : conflicts) {
    const auto alike = [&](const auto& kind) { return same_keys(kind.front()->layout, conflict.layout); };
    auto kind = std::ranges::find_if(kinds, alike);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), std::vector<const Rejection*>{});
    kind->push_back(&conflict);
  }
  std::string text = "\nwhat cannot exist, or is not run by the framework:\n";
  for (const auto& kind : kinds) {
    const std::string more = kind.size() == 1 ? "" : fmt::format(" (and {} others by these keys)", kind.size() - 1);
    text += fmt::format("  {}: {}{}\n", to_text(kind.front()->layout), kind.front()->reason, more);
  }
  return kinds.empty() ? "" : text;
}

ordered_json other_values_json(const Pricing& pricing, const SearchResult& search) {
  ordered_json answer = ordered_json::array();
  for (const OtherValue& other : search.other_values) {
    ordered_json entry{{"key", other.key},        {"value", other.value},  {"layout", nullptr},
                       {"step_time_s", nullptr},  {"grows_most", nullptr}, {"grows_by_s", nullptr},
                       {"missing_bytes", nullptr}};
    if (other.best) {
      const Growth growth = largest_growth(pricing, search.ranked.front(), *other.best);
      entry["layout"] = to_json(other.best->layout);
      entry["step_time_s"] = step_time(other.best->simulation).count();
      entry["grows_most"] = component_name(growth.component);
      entry["grows_by_s"] = growth.seconds.count();
    } else if (other.missing_bytes > 0) {
      entry["missing_bytes"] = other.missing_bytes;
    }
    answer.push_back(std::move(entry));
  }
  return answer;
}

}}  // namespace plumb::tools
