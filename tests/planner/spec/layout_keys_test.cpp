#include "planner/spec/layout_keys.h"

#include <string>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("every key is read back from its value's text") {
  const Layout layout{.data = 2,
                      .tensor = 4,
                      .pipeline = 3,
                      .context = 5,
                      .context_kind = ContextKind::kAllGather,
                      .expert = 6,
                      .expert_tensor = 7,
                      .chunks = 8,
                      .zero = 3,
                      .shard = 9,
                      .sequence_parallel = true,
                      .microbatch = 10,
                      .recompute = Recompute::kFull,
                      .recompute_layers = 13,
                      .offload = {.optimizer = true},
                      .schedule = "gpipe",
                      .group = 11,
                      .bucket_mib = 12,
                      .order = RankOrder::kReplicasApart,
                      .meshes = {{.data = 4, .tensor = 2}, {.data = 8}}};
  int keys = 0;
  visit_layout_keys<std::optional>([&](std::string_view key, auto answer, auto question) {
    const LayoutRequest read = parse_layout(std::string(key) + "=" + value_text(layout.*answer));
    CHECK(read.*question == layout.*answer);
    CHECK(layout.*answer != Layout{}.*answer);  // the layout above has every key
    ++keys;
  });
  CHECK(keys == 20);
  CHECK(value_text(std::vector{4, 3, 1}) == "4:3:1");
}

}  // namespace plumb::test
