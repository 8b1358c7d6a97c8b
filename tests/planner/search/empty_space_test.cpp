#include "planner/search/empty_space.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a space without layouts names the keys without which there are some") {
  Pricing pricing(small_gpt(), round_cluster(8), {.global_batch = 16, .sequence = 256});
  const auto sentence = [&](const char* space) { return why_empty(pricing, parse_layout_space(space)); };
  CHECK(sentence("pp=5..7") == "no layout of the 8 devices has pp=5..7: give another value of, or leave out, pp=5..7");
  CHECK(sentence("dp=3,zero=1") ==
        "no layout of the 8 devices has dp=3,zero=1: give another value of, or leave out, dp=3");
  CHECK(sentence("pp=8,v=2..").find("leave out, pp=8 or v=2..") != std::string::npos);
  CHECK(sentence("dp=3,pp=5..7").find("free several of these keys") != std::string::npos);
}

}  // namespace plumb::test
