#include "planner/search/empty_space.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/search/layout_tree.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

bool has_layouts(Pricing& pricing, const LayoutSpace& space) {
  bool found = false;
  visit_layouts(pricing, space, [&](const Layout&) {
    found = true;
    return false;
  });
  return found;
}

}  // namespace

std::string why_empty(Pricing& pricing, const LayoutSpace& space) {
  std::vector<std::string> remedies;
  visit_layout_keys<Values>([&](std::string_view, auto, auto values) {
    if ((space.*values).is_open()) return;
    LayoutSpace freed = space;
    freed.*values = {};
    LayoutSpace alone;
    alone.*values = space.*values;
    if (has_layouts(pricing, freed)) remedies.push_back(to_text(alone));
  });
  return fmt::format("no layout of the {} devices has {}: {}", pricing.cluster().devices, to_text(space),
                     remedies.empty()
                         ? "free several of these keys"
                         : fmt::format("give another value of, or leave out, {}", fmt::join(remedies, " or ")));
}

}}  // namespace plumb::planner
