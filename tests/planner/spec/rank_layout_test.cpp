#include "planner/spec/rank_layout.h"

#include <doctest/doctest.h>

#include "planner/spec/layout.h"

namespace plumb::test {

TEST_CASE("a rank divides the pipeline's sequences among its replicas") {
  const Layout layout{.data = 2,
                      .pipeline = 3,
                      .sequence_parallel = true,
                      .microbatch = 4,
                      .meshes = {{.data = 2, .tensor = 4}, {.data = 8}, {.data = 4, .tensor = 2}}};
  const Layout first = layout_of_rank(layout, 0), second = layout_of_rank(layout, 1);
  CHECK(std::tuple(first.data, first.tensor, first.microbatch, first.sequence_parallel) == std::tuple(2, 4, 4, true));
  CHECK(std::tuple(second.data, second.tensor, second.microbatch, second.sequence_parallel) ==
        std::tuple(8, 1, 1, false));
  CHECK(second.meshes == layout.meshes);
  CHECK(mesh_of_rank(second, 2) == layout.meshes[2]);
  CHECK(devices_of(layout) == 24);
  CHECK(devices_of_rank(layout, 1) == 8);
  CHECK(devices_before(layout, 2) == 16);
  CHECK(has_replicas(layout));
}

TEST_CASE("ranks that are alike lie one behind the other") {
  const Layout layout{.data = 2, .tensor = 3, .pipeline = 4, .context = 5};
  CHECK(layout_of_rank(layout, 3) == layout);
  CHECK(devices_of(layout) == 120);
  CHECK(devices_of_rank(layout, 3) == 30);
  CHECK(devices_before(layout, 3) == 90);
  CHECK_FALSE(has_replicas({.tensor = 8, .pipeline = 2}));
}

TEST_CASE("meshes that are all alike are the plain layout") {
  const Layout plain = layout_of(parse_layout("meshes=dp4tp2:dp4tp2,mbs=8,zero=1"));
  CHECK(plain == layout_of(parse_layout("dp=4,tp=2,pp=2,mbs=2,zero=1")));
  CHECK(layout_of(parse_layout("dp=2,meshes=dp4:dp4,mbs=8")) == layout_of(parse_layout("dp=4,pp=2,mbs=4")));
  // Four replicas cannot share a micro-batch of two: the meshes stay, and are refused where the layout is asked about.
  CHECK(layout_of(parse_layout("meshes=dp4:dp4,mbs=2")).meshes.size() == 2);
  const Layout unequal = layout_of(parse_layout("meshes=dp4tp2:dp8,mbs=8"));
  CHECK(unequal.pipeline == 2);
  CHECK(to_text(unequal).find("meshes=dp4tp2:dp8") != std::string::npos);
  CHECK(layout_of(parse_layout(to_text(unequal))) == unequal);
}

}  // namespace plumb::test
