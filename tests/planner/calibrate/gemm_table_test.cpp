#include "planner/calibrate/gemm_table.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("products are read by the names of their columns, as times or as rates") {
  const auto rates =
      parse_gemm_table("# A100\nk, device,m,n,tflops,layout\n\n1000,x,10,100,2,NT\n1000,x,10,100,4,TN\n", "t");
  REQUIRE(rates.size() == 2);
  CHECK(rates[0].kernel == "gemm");
  CHECK(rates[0].shape == std::vector<std::int64_t>{10, 100, 1000, 1, 2});
  CHECK(rates[0].median.count() == doctest::Approx(2.0 * 10 * 100 * 1000 / 2e12));
  CHECK(rates[1].shape.back() == 0);
  const auto times = parse_gemm_table("m,n,k,us\n10,100,1000,25\n", "t");
  CHECK(times.at(0).median.count() == doctest::Approx(25e-6));
  CHECK(times[0].shape.back() == 0);  // y = x W^T where no layout is given
}

TEST_CASE("a table is known by its head") {
  CHECK(is_gemm_table("# a\n\nm, n, k, us\n"));
  CHECK_FALSE(is_gemm_table("m,n,us\n"));
  CHECK_FALSE(is_gemm_table(""));
}

TEST_CASE("a bad table is refused with line and remedy") {
  const auto refused = [](const char* text, const char* place, const char* part) {
    CAPTURE(text);
    check_refused<SpecError>([&] { parse_gemm_table(text, "t.csv"); }, place, part);
  };
  refused("m,n,us\n", "t.csv:1", "column k");
  refused("m,n,k\n1,1,1\n", "t.csv:1", "tflops or us");
  refused("m,n,k,us\n1,1,1\n", "t.csv:2", "3 cells of 4");
  refused("m,n,k,us\n1,0,1,5\n", "t.csv:2", "n is");
  refused("m,n,k,us\n1,1.5,1,5\n", "t.csv:2", "whole number");
  refused("m,n,k,us\n1,1,1,-5\n", "t.csv:2", "us is");
  refused("m,n,k,tflops\n\n1,1,1,x\n", "t.csv:3", "tflops is");
  refused("m,n,k,layout,us\n1,1,1,TT,5\n", "t.csv:2", "TN, NN or NT");
  refused("m,n,k,us\n", "t.csv:1", "no rows");
}

}  // namespace plumb::test
