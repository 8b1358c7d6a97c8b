#include "tools/reports/slowdown_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace plumb::test {

TEST_CASE("a slowdown is reported with what it was measured on, and as unknown where nothing was computed meanwhile") {
  SlowdownSample sample{.members = 4,
                        .bytes = 1 << 20,
                        .product_edge = 512,
                        .alone = Seconds{4.5},
                        .beside = Seconds{5},
                        .collective_alone = Seconds{1.5},
                        .collective = Seconds{2},
                        .repeats = 3};
  const nlohmann::ordered_json json = slowdown_json(sample);
  CHECK(json["collective"] == "all_reduce");
  CHECK(json["collective_slowdown"].get<double>() == doctest::Approx(1.0 / 3));
  CHECK(json["collective_alone_s"] == 1.5);
  CHECK(json["collective_beside_s"] == 2.0);
  const std::string text = slowdown_text({sample}, "bf16");
  CHECK(text.find("512 x 512, bf16") != std::string::npos);
  CHECK(text.find("\"collective_slowdown\": 0.33") != std::string::npos);
  sample.beside = Seconds{7};
  CHECK(slowdown_json(sample)["collective_slowdown"].is_null());
  const std::string unknown = slowdown_text({sample}, "bf16");
  CHECK(unknown.find("nothing was computed meanwhile") != std::string::npos);
  CHECK(unknown.find("says so") == std::string::npos);
  CHECK(slowdown_text({}, "bf16").empty());
}

}  // namespace plumb::test
