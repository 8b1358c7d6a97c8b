#include "planner/spec/layout_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb { inline namespace planner {

std::string value_text(std::int64_t number) {
  return fmt::format("{}", number);
}

std::string value_text(int number) {
  return fmt::format("{}", number);
}

std::string value_text(bool flag) {
  return flag ? "1" : "0";
}

std::string value_text(const std::string& name) {
  return name;
}

std::string value_text(Recompute recompute) {
  return std::string(recompute_name(recompute));
}

std::string value_text(ContextKind kind) {
  return std::string(context_kind_name(kind));
}

std::string value_text(const Offload& offload) {
  return std::string(offload_name(offload));
}

std::string value_text(RankOrder order) {
  return std::string(rank_order_name(order));
}

std::string value_text(const std::vector<RankMesh>& meshes) {
  if (meshes.empty()) return "none";
  std::vector<std::string> texts;
  for (const RankMesh& mesh : meshes) texts.push_back(to_text(mesh));
  return fmt::format("{}", fmt::join(texts, ":"));
}

std::string value_text(const std::vector<int>& split) {
  return fmt::format("{}", fmt::join(split, ":"));
}

}}  // namespace plumb::planner
