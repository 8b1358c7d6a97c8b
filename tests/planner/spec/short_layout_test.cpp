#include "planner/spec/short_layout.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

std::string spelled(const char* layout) {
  return short_text(layout_of(parse_layout(layout)));
}

}  // namespace

TEST_CASE("a short layout has the degrees above 1, with the stages of a rank behind x") {
  CHECK(spelled("tp=4,pp=2,v=20,dp=32,zero=2,schedule=interleaved") == "TP4 PP2x20 DP32 ZeRO-2");
  CHECK(spelled("tp=2,sp=1,cp=2,ep=8,etp=2,dp=8") == "TP2 SP CP2 EP8 ETP2 DP8");
  CHECK(spelled("dp=1") == "DP1");
  CHECK(spelled("v=2,schedule=interleaved") == "PP1x2");
}

TEST_CASE("a short layout names the keys that are not as usual") {
  CHECK(spelled("pp=4,mbs=2,recompute=full,schedule=zb-h1") == "PP4 mbs=2 recompute=full schedule=zb-h1");
  CHECK(spelled("pp=4,v=2,schedule=zb-v,offload=optimizer,bucket_mib=25") ==
        "PP4x2 offload=optimizer schedule=zb-v bucket_mib=25");
  CHECK(spelled("pp=4,v=1,schedule=interleaved") == "PP4 schedule=interleaved");
}

TEST_CASE("two layouts that differ in a key have different short texts") {
  CHECK(spelled("tp=2,pp=1") != spelled("tp=1,pp=2"));
  CHECK(spelled("pp=12,v=1") != spelled("pp=1,v=12,schedule=interleaved"));
  CHECK(spelled("cp=2") != spelled("cp=2,cp_kind=ulysses"));
}

}  // namespace plumb::test
