#include "planner/spec/offload.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

const std::vector<Offload>& all_offloads() {
  static const std::vector<Offload> kAll = {
      {.optimizer = true}, {.activations = true}, {.optimizer = true, .activations = true}};
  return kAll;
}

std::string_view offload_name(const Offload& offload) {
  return offload_names()[(offload.optimizer ? 1U : 0U) + (offload.activations ? 2U : 0U)];
}

const std::vector<std::string>& offload_names() {
  static const std::vector<std::string> kNames = {"none", "optimizer", "activations", "optimizer+activations"};
  return kNames;
}

Offload offload_from_name(std::string_view name) {
  const auto it = std::ranges::find(offload_names(), name);
  if (it == offload_names().end())
    throw SpecError(fmt::format("layout offload={}: give {}", name, fmt::join(offload_names(), ", ")));
  const auto which = it - offload_names().begin();
  return {.optimizer = which % 2 == 1, .activations = which >= 2};
}

}}  // namespace plumb::planner
