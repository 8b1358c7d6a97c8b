#include "tools/machine_load.h"

#include <cstdlib>
#include <thread>

#include <fmt/format.h>

namespace plumb {

std::string load_text() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? fmt::format("load {:.1f} on {} cores", load, std::thread::hardware_concurrency())
                                   : std::string("load unknown");
}

}  // namespace plumb
