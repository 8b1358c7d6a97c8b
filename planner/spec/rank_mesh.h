#pragma once
// The mesh of one pipeline rank: how many data and tensor ranks it has (Zheng et al. 2022, Alpa).
//
//   parse_meshes("dp4tp2:dp8", ':')    // two pipeline ranks of eight devices each

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

struct RankMesh {
  int data = 1;
  int tensor = 1;

  friend auto operator<=>(const RankMesh&, const RankMesh&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};

/// Reads a mesh for each pipeline rank; degrees of 1 need not be named. Throws SpecError naming an item that is no mesh.
std::vector<RankMesh> parse_meshes(std::string_view text, char separator);

/// Returns "dp4tp2", without degrees of 1, or "dp1".
std::string to_text(const RankMesh& mesh);

}}  // namespace plumb::planner
