#include "planner/spec/context_kind.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
std::string_view context_kind_name(ContextKind kind) {
  return kind == ContextKind::kOfStack ? "of-stack" : std::string_view(context_kind_names()[static_cast<int>(kind)]);
}

const std::vector<std::string>& context_kind_names() {
  static const std::vector<std::string> kNames = {"ring", "all-gather", "ulysses"};
  return kNames;
}

ContextKind context_kind_from_name(std::string_view name) {
  const auto it = std::ranges::find(context_kind_names(), name);
  if (it == context_kind_names().end())
    throw SpecError(fmt::format("layout cp_kind={}: give {}", name, fmt::join(context_kind_names(), ", ")));
  return static_cast<ContextKind>(it - context_kind_names().begin());
}

}}  // namespace plumb::planner
