#pragma once
// The benchmarks share these: the fastest of several runs, the memory bandwidth of one core, the resident set.

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace plumb::test {

/// Returns the seconds of processor time that this thread has used. Time in which other programs hold the core does not
/// count.
inline double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Returns the seconds of the fastest of `repeats` runs.
template <typename Run>
double fastest_seconds(int repeats, Run run) {
  double fastest = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const double begin = thread_seconds();
    run();
    fastest = std::min(fastest, thread_seconds() - begin);
  }
  return fastest;
}

/// Returns the bytes a second that the triad a[i] = b[i] + s * c[i] reads and writes on one core (STREAM, McCalpin
/// 1995: 24 bytes an element). The arrays hold 64 MB each.
inline double triad_bytes_per_second() {
  constexpr std::size_t kElements = 8'000'000;
  std::vector<double> a(kElements, 0.0);
  std::vector<double> b(kElements, 1.0);
  std::vector<double> c(kElements, 2.0);
  const double seconds = fastest_seconds(7, [&] {
    for (std::size_t i = 0; i < kElements; ++i) a[i] = b[i] + 3.0 * c[i];
  });
  if (a[kElements / 2] != 7.0) std::abort();
  return 3.0 * sizeof(double) * kElements / seconds;
}

/// Returns the largest resident set so far, in MB; 0 where the system does not say.
inline double peak_resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1000;
  }
  return 0;
}

}  // namespace plumb::test
