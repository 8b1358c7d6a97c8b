#include "tools/inputs/noise_option.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_SUITE("unit") {
  TEST_CASE("noise is read key by key, and what is not given has its default") {
    const NoiseSpec one = parse_noise("cv=0.05");
    CHECK(one.cv == 0.05);
    CHECK(one.rank_cv == 0);
    CHECK(one.runs == 1000);
    CHECK(one.seed == 1);
    const NoiseSpec all = parse_noise("rank_cv=0.02,comm_cv=0.2,dist=gamma,runs=7,seed=9");
    CHECK(all.cv == 0);
    CHECK(all.rank_cv == 0.02);
    CHECK(all.communication_cv == 0.2);
    CHECK(all.distribution == Distribution::kGamma);
    CHECK(all.runs == 7);
    CHECK(all.seed == 9);
  }

  TEST_CASE("what is no noise is refused with the entry and the remedy") {
    const auto refused = [](const char* text, const char* says) {
      CHECK_THROWS_WITH_AS(parse_noise(text), doctest::Contains(says), SpecError);
    };
    refused("", "give cv=, rank_cv= or comm_cv=");
    refused("runs=5", "give cv=, rank_cv= or comm_cv=");
    refused("cv", "\"cv\" has no value");
    for (const char* text : {"cv=nan", "rank_cv=inf", "comm_cv=1e999"}) refused(text, "a share of the mean");
    refused("cv=much", "--noise: cv=much: give a share of the mean");
    refused("cv=0.1,cv=0.2", "cv is given twice");
    refused("cv=0.1,dist=cauchy", "give lognormal, normal or gamma");
    refused("cv=0.1,run=5", "did you mean \"runs\"");
    refused("cv=0.1,runs=2.5", "a whole number of runs");
    refused("cv=0.1,runs=100000000", "runs=100000000 is too many: give at most 1000000");
    refused("cv=0.1,seed=-1", "a whole number of 0 or more");
  }
}

}  // namespace plumb::test
