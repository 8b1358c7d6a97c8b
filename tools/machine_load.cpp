#include "tools/machine_load.h"

#include <cstdlib>
#include <ctime>
#include <thread>

#include <fmt/format.h>

namespace plumb {

std::string load_text() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? fmt::format("load {:.1f} on {} cores", load, std::thread::hardware_concurrency())
                                   : std::string("load unknown");
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

}  // namespace plumb
