#pragma once
// Logs as the programs print them, with times that a test chooses.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plumb::test {

/// Returns a log of nccl-tests with `ranks` spread evenly over `nodes`. Rows are (bytes, microseconds), with the same
/// time in place.
inline std::string nccl_tests_text(const std::string& program, int ranks, int nodes,
                                   const std::vector<std::pair<std::int64_t, double>>& rows) {
  std::string text = fmt::format("# Collective test starting: {}_perf\n# Using devices\n", program);
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("#  Rank {:2} Group  0 Pid  12{} on  node-{} device {:2} [0x1b] NVIDIA H100 80GB HBM3\n", rank,
                        rank, rank * nodes / ranks, rank % 8);
  }
  text +=
      "#                                                    out-of-place                       in-place\n"
      "#       size         count   type   redop   root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "#        (B)    (elements)                           (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
  const bool reduces = program.find("reduce") != std::string::npos || program == "sendrecv";
  for (const auto& [bytes, us] : rows) {
    text += fmt::format(
        "{:12} {:13}  float  {:>6}     -1  {:7.6g}    1.00    1.75      0  {:7.6g}    1.00    1.75      0\n", bytes,
        bytes / 4, reduces ? "sum" : "none", us, us);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.4\n#\n";
}

}  // namespace plumb::test
