#include "planner/spec/rank_mesh.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("meshes are read with their degrees in any order, and written with those above 1") {
  const std::vector<RankMesh> meshes{{.data = 4, .tensor = 2}, {.data = 8}, {.tensor = 2}, {}};
  CHECK(parse_meshes("dp4tp2:dp8:tp2:dp1", ':') == meshes);
  CHECK(parse_meshes("tp2dp4,tp1dp8,tp2,tp1", ',') == meshes);
  CHECK(to_text(meshes[0]) == "dp4tp2");
  CHECK(to_text(meshes[1]) == "dp8");
  CHECK(to_text(meshes[2]) == "tp2");
  CHECK(to_text(meshes[3]) == "dp1");
}

TEST_CASE("an item that is no mesh is named") {
  for (const char* item : {"", "2", "dp", "dp0", "dp-2", "tp2tp2", "pp2", "dp2x"})
    check_refused<SpecError>([&] { parse_meshes(std::string("dp2:") + item, ':'); }, std::string("\"") + item + "\"",
                             "as in dp2");
}

}  // namespace plumb::test
