#include "planner/search/named_meshes.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

SearchResult found(const std::string& space, int devices = 4) {
  Pricing pricing(small_gpt(), round_cluster(devices), kSmallTraining);
  return search_layouts(pricing, parse_layout_space(space), {.keep = 3});
}

}  // namespace

TEST_CASE("meshes that are named are evaluated, the best first") {
  const SearchResult both = found("meshes=tp2:dp2|dp2:tp2");
  REQUIRE(both.ranked.size() == 2);
  CHECK(both.values[0] <= both.values[1]);
  for (const Evaluation& row : both.ranked) {
    CHECK(row.layout.meshes.size() == 2);
    CHECK(row.layout.microbatch == 2);  // the smallest that all meshes divide
    CHECK(row.why_private.find("meshes of different shape") != std::string::npos);
  }
}

TEST_CASE("meshes that are all alike are searched as the degrees that they stand for") {
  const SearchResult meshes = found("meshes=tp2:tp2,mbs=1"), plain = found("dp=1,tp=2,pp=2,mbs=1");
  REQUIRE_FALSE(plain.ranked.empty());
  CHECK(meshes.values.front() == plain.values.front());
  CHECK(meshes.ranked.front().layout.meshes.empty());
}

TEST_CASE("with meshes no other key is searched") {
  check_refused<SpecError>([] { found("meshes=tp2:dp2,zero=0|1"); }, "layout zero", "one value");
  CHECK_FALSE(names_meshes(parse_layout_space("tp=2")));
  CHECK_FALSE(names_meshes(LayoutSpace(request_of(Layout{}))));
  CHECK(names_meshes(parse_layout_space("meshes=tp2:dp2")));
}

TEST_CASE("meshes that cannot be, or hold too much, are told so") {
  CHECK(found("meshes=tp2:dp4").infeasible.find("need 6 devices") != std::string::npos);
  Pricing pricing(preset_model("gpt3-175b"), round_cluster(4), kSmallTraining);
  const SearchResult large = search_layouts(pricing, parse_layout_space("meshes=tp2:dp2"));
  CHECK(large.ranked.empty());
  CHECK(large.infeasible.find("give that rank a larger mesh") != std::string::npos);
}

}  // namespace plumb::test
