// How fast is a Chrome trace written, and how far is that from copying its bytes once?
//
//   trace_bench [ranks microbatches]
//
// Slices are the spans of a timeline, messages among them; arrows, counters and names are written besides. The bound is
// one memcpy of the text, as much at a time as the trace is handed over in. Writing to /dev/null and to a file
// includes the kernel's copy of each piece.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"
#include "tests/bench/stopwatch.h"
#include "traces/chrome/chrome_trace.h"

namespace {

using namespace plumb;
using namespace plumb::test;

double copy_seconds(const std::string& text, int repeats) {
  std::vector<char> piece(kTracePiece);
  return fastest_seconds(repeats, [&] {
    for (std::size_t at = 0; at < text.size(); at += piece.size()) {
      std::memcpy(piece.data(), text.data() + at, std::min(piece.size(), text.size() - at));
      asm volatile("" : : "r"(piece.data()) : "memory");
    }
  });
}

double file_seconds(const Timeline& timeline, const char* path, int repeats) {
  return fastest_seconds(repeats, [&] {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write_chrome_trace(timeline, [file](std::string_view piece) {
      if (write(file, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) std::abort();
    });
    close(file);
  });
}

void time_trace(const char* what, const Timeline& timeline, int repeats) {
  double slices = 0;
  for (const RankTimeline& rank : timeline.ranks) slices += static_cast<double>(rank.spans.size());
  const std::string text = write_chrome_trace(timeline);
  std::size_t bytes = 0;
  const double writing = fastest_seconds(
      repeats, [&] { write_chrome_trace(timeline, [&bytes](std::string_view piece) { bytes += piece.size(); }); });
  const double copying = copy_seconds(text, repeats);
  const std::string path = fmt::format("/tmp/plumb-trace-bench-{}.json", getpid());
  const double to_file = file_seconds(timeline, path.c_str(), repeats);
  std::remove(path.c_str());
  fmt::print(
      "{}: {:.0f} slices, {:.0f} MB\n  {:.2f} M slices/s, {:.0f} MB/s = {:.3f} of one copy ({:.1f} GB/s); to /dev/null "
      "{:.2f}, "
      "to a file {:.2f} M slices/s\n",
      what, slices, static_cast<double>(text.size()) / 1e6, slices / writing / 1e6,
      static_cast<double>(text.size()) / writing / 1e6, copying / writing,
      static_cast<double>(text.size()) / copying / 1e9, slices / file_seconds(timeline, "/dev/null", repeats) / 1e6,
      slices / to_file / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[1]) : 64;
  const int microbatches = argc > 2 ? std::atoi(argv[2]) : 512;
  const Schedule lowered =
      lower(make_schedule("interleaved", {.ranks = ranks, .microbatches = microbatches, .chunks = 4}));
  const CostTable costs = chunk_cost_table(4 * ranks, {.hop_latency = Seconds{0.1}});
  constexpr int kRepeats = 5;
  time_trace("without memory", simulate(lowered, costs, {.record_memory = false}).timeline, kRepeats);
  time_trace("with memory by kind", simulate(lowered, costs).timeline, kRepeats);
}
