#include "tools/io/progress.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "tools/io/terminal.h"

namespace plumb { inline namespace tools {
namespace {

/// The line of the process; there is one stderr.
struct ProgressLine {
  std::mutex mutex;
  bool shown = false;  ///< a Progress lives, and no answer has begun
  bool drawn = false;  ///< it stands on the screen
  std::string what;
  std::optional<double> share;
  std::chrono::steady_clock::time_point start;
  std::optional<Seconds> expected;
};

ProgressLine& progress_line() {
  static ProgressLine the_line;
  return the_line;
}

/// Returns the text of the line, which is shorter than the screen is wide, so that it can be redrawn.
std::string progress_text(const ProgressLine& line) {
  constexpr std::size_t kBar = 40;
  constexpr int kUsualColumns = 80;
  const Seconds elapsed = std::chrono::steady_clock::now() - line.start;
  const std::optional<double> share = line.expected ? elapsed / *line.expected : line.share;
  std::string end = fmt::format(": {:.0f} s", elapsed.count());
  if (share) {
    const auto filled = static_cast<std::size_t>(std::clamp(*share, 0.0, 1.0) * kBar);
    end = fmt::format(" [{}{}]", std::string(filled, '#'), std::string(kBar - filled, ' '));
  }
  const std::size_t most = static_cast<std::size_t>(note_width().value_or(kUsualColumns)) - 1;
  return (line.what.substr(0, most - std::min(most, end.size())) + end).substr(0, most);
}

void write_to_screen(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void erase_line(ProgressLine& line) {
  if (std::exchange(line.drawn, false)) write_to_screen("\r\x1b[K");
}

void redraw_until(const std::stop_token& stop) {
  constexpr std::chrono::seconds kBefore{1};
  constexpr std::chrono::milliseconds kEvery{200};
  std::condition_variable_any stopped;
  std::unique_lock lock(progress_line().mutex);
  const auto waits = [&](std::chrono::milliseconds time) {
    return !stopped.wait_for(lock, stop, time, [&stop] { return stop.stop_requested(); });
  };
  for (std::chrono::milliseconds time = kBefore; waits(time); time = kEvery) {
    if (!progress_line().shown) continue;
    write_to_screen("\r" + progress_text(progress_line()) + "\x1b[K");
    progress_line().drawn = true;
  }
  erase_line(progress_line());
}

}  // namespace

Progress::Progress(std::string what, std::optional<Seconds> expected) {
  if (!shows_progress()) return;
  const std::scoped_lock lock(progress_line().mutex);
  if (progress_line().shown) return;
  progress_line().shown = true;
  progress_line().what = std::move(what);
  progress_line().share.reset();
  progress_line().start = std::chrono::steady_clock::now();
  progress_line().expected = expected;
  clock_ = std::jthread(redraw_until);
}

Progress::~Progress() {
  if (!clock_.joinable()) return;
  clock_.request_stop();
  clock_.join();
  progress_line().shown = false;
}

void set_progress(std::string what, double share) {
  const std::scoped_lock lock(progress_line().mutex);
  progress_line().what = std::move(what);
  progress_line().share = share;
}

void erase_progress() {
  const std::scoped_lock lock(progress_line().mutex);
  erase_line(progress_line());
}

void end_progress() {
  const std::scoped_lock lock(progress_line().mutex);
  erase_line(progress_line());
  progress_line().shown = false;
}

}}  // namespace plumb::tools
