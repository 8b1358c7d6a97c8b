#include "planner/search/freed_keys.h"

#include <functional>
#include <string_view>
#include <utility>

#include "planner/search/search.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// Takes a key's values from one space to the other.
using Free = std::function<void(LayoutSpace& from, LayoutSpace& to)>;

std::vector<Free> pins_of(const LayoutSpace& space) {
  std::vector<Free> pins;
  visit_layout_keys<Values>([&](std::string_view, auto, auto values) {
    if ((space.*values).is_open()) return;
    pins.push_back([values](LayoutSpace& from, LayoutSpace& to) { to.*values = std::exchange(from.*values, {}); });
  });
  return pins;
}

}  // namespace

std::vector<FreedKeys> fewest_freed_keys(Pricing& pricing, const LayoutSpace& space) {
  const std::vector<Free> pins = pins_of(space);
  std::vector<FreedKeys> found;
  const std::function<void(std::size_t, std::size_t, const LayoutSpace&, const LayoutSpace&)> free_more =
      [&](std::size_t first, std::size_t more, const LayoutSpace& left, const LayoutSpace& freed) {
        if (more == 0) {
          SearchResult search = search_layouts(pricing, left, {.keep = 1, .advise = false});
          if (!search.ranked.empty()) found.push_back({freed, std::move(search.ranked.front().layout)});
          return;
        }
        for (std::size_t pin = first; pin + more <= pins.size(); ++pin) {
          LayoutSpace less = left, also = freed;
          pins[pin](less, also);
          free_more(pin + 1, more - 1, less, also);
        }
      };
  for (std::size_t count = 1; count <= pins.size() && found.empty(); ++count) free_more(0, count, space, {});
  return found;
}

}}  // namespace plumb::planner
