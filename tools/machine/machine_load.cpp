#include "tools/machine/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace plumb { inline namespace tools {

std::string load_text() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? fmt::format("load {:.1f} on {} cores", load, std::thread::hardware_concurrency())
                                   : std::string("load unknown");
}

OtherProgramsClock::OtherProgramsClock() : start_(now()) {}

std::optional<OtherPrograms> OtherProgramsClock::read() const {
  const std::optional<Reading> end = now();
  if (!start_ || !end || !(end->wall > start_->wall)) return std::nullopt;
  const Seconds wall = end->wall - start_->wall;
  const Seconds others = (end->all - start_->all) - (end->own - start_->own);
  return OtherPrograms{std::max(0.0, others / wall), std::max(0.0, (end->host - start_->host) / wall)};
}

std::optional<OtherProgramsClock::Reading> OtherProgramsClock::now() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
  rusage own{};
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >> stolen) ||
      getrusage(RUSAGE_SELF, &own) != 0)
    return std::nullopt;
  const Seconds tick{1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))};
  const auto seconds = [](const timeval& time) {
    return Seconds{static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec)};
  };
  return Reading{.wall = std::chrono::steady_clock::now().time_since_epoch(),
                 .own = seconds(own.ru_utime) + seconds(own.ru_stime),
                 .all = (user + nice + system + interrupts + soft_interrupts) * tick,
                 .host = stolen * tick};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

}}  // namespace plumb::tools
