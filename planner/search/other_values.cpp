#include "planner/search/other_values.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "planner/search/skeletons.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

template <typename Value>
using Found = std::vector<Value>;

/// Adds a value that is not there yet.
template <typename Value>
void add(Found<Value>& found, const Value& value) {
  if (std::find(found.begin(), found.end(), value) == found.end()) found.push_back(value);
}

template <typename Value>
void add_all(Found<Value>& found, const std::vector<Value>& values) {
  for (const Value& value : values) add(found, value);
}

/// Returns the values that each key has in the layouts of the tree. No layout is held.
LayoutKeys<Found> values_of(const LayoutTree& tree) {
  LayoutKeys<Found> found;
  const LayoutChoices& choices = tree.choices();
  for (const Layout& family : tree.families().layouts) {
    for (const Layout& core : tree.cores(family).layouts) {
      visit_layout_keys<Found>([&](std::string_view, auto answer, auto values) { add(found.*values, core.*answer); });
      add_all(found.shard, choices.shard(core));
      add_all(found.offload, choices.offload(core));
      add_all(found.order, choices.order(core));
      add_all(found.group, choices.group(core));
      add_all(found.bucket_mib, choices.bucket_mib(core));
    }
  }
  return found;
}

/// Returns the values that are the given one alone. Numbers are bounded and not named, as names open what is usually
/// closed.
template <typename Value>
Values<Value> only(const Value& value) {
  if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>)
    return {.least = value, .most = value};
  else
    return {.named = {value}};
}

/// Leaves the values but `best`, in order; of many numbers the powers of two.
template <typename Value>
void leave_others(std::vector<Value>& values, const Value& best) {
  constexpr std::size_t kMany = 16;
  std::erase(values, best);
  if constexpr (std::is_arithmetic_v<Value>) std::sort(values.begin(), values.end());  // flags have no ranges::sort
  if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>) {
    if (values.size() > kMany)
      std::erase_if(values, [](Value value) { return !std::has_single_bit(static_cast<std::uint64_t>(value)); });
  }
}

}  // namespace

std::vector<OtherValue> other_values(Pricing& pricing, const LayoutSpace& space, const Layout& best,
                                     const std::function<SearchResult(const LayoutSpace& pinned)>& search) {
  const Skeletons skeletons;
  LayoutKeys<Found> found = values_of(LayoutTree(pricing, space, skeletons));
  std::vector<OtherValue> answers;
  visit_layout_keys<Found, Values>([&](std::string_view key, auto member, auto open, auto pins) {
    leave_others(found.*open, best.*member);
    for (const auto& value : found.*open) {
      LayoutSpace pinned = space;
      pinned.*pins = only<std::remove_cvref_t<decltype(best.*member)>>(value);
      SearchResult of_value = search(pinned);
      if (of_value.ranked.empty() && of_value.missing_bytes == 0) continue;
      OtherValue answer{.key = std::string(key), .value = value_text(value), .missing_bytes = of_value.missing_bytes};
      if (!of_value.ranked.empty()) {
        answer.best = std::move(of_value.ranked.front());
        answer.best->lowered = {};
        answer.missing_bytes = 0;
      }
      answers.push_back(std::move(answer));
    }
  });
  return answers;
}

}}  // namespace plumb::planner
