#include "planner/spec/rank_mesh.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

[[noreturn]] void refuse_mesh(std::string_view item) {
  throw SpecError(fmt::format(
      "\"{}\" is no mesh: give each pipeline rank its replicas and tensor ranks, as in dp2 or tp2 or dp4tp2", item));
}

RankMesh parse_mesh(std::string_view item) {
  constexpr int kLargestDegree = 1'000'000;
  RankMesh mesh;
  bool has_data = false, has_tensor = false;
  for (std::string_view left = item; !left.empty() || item.empty();) {
    const bool is_data = left.starts_with("dp"), is_tensor = left.starts_with("tp");
    if (!is_data && !is_tensor) refuse_mesh(item);
    int degree = 0;
    const auto [end, error] = std::from_chars(left.data() + 2, left.data() + left.size(), degree);
    const bool is_degree = error == std::errc() && degree >= 1 && degree <= kLargestDegree;
    if (!is_degree || (is_data && has_data) || (is_tensor && has_tensor)) refuse_mesh(item);
    (is_data ? mesh.data : mesh.tensor) = degree;
    (is_data ? has_data : has_tensor) = true;
    left.remove_prefix(static_cast<std::size_t>(end - left.data()));
  }
  return mesh;
}

}  // namespace

std::vector<RankMesh> parse_meshes(std::string_view text, char separator) {
  std::vector<RankMesh> meshes;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    meshes.push_back(parse_mesh(text.substr(start, end - start)));
    start = end + 1;
  }
  return meshes;
}

std::string to_text(const RankMesh& mesh) {
  std::string text;
  if (mesh.data > 1 || mesh.tensor == 1) text += fmt::format("dp{}", mesh.data);
  if (mesh.tensor > 1) text += fmt::format("tp{}", mesh.tensor);
  return text;
}

}}  // namespace plumb::planner
