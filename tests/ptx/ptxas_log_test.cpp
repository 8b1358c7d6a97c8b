#include "tests/ptx/ptxas_log.h"

#include <doctest/doctest.h>

namespace plumb::test::ptx {

TEST_CASE("registers and spills of each kernel are read") {
  const auto figures = ptxas_figures(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1aPf\n"
      "    128 bytes stack frame, 128 bytes spill stores, 132 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 128 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function '_Z1b' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers\n");
  REQUIRE(figures.size() == 2);
  CHECK(figures.at("_Z1aPf").registers == 255);
  CHECK(figures.at("_Z1aPf").spilled_bytes == 260);
  CHECK(figures.at("_Z1b").registers == 32);
  CHECK(figures.at("_Z1b").spilled_bytes == 0);
}

}  // namespace plumb::test::ptx
