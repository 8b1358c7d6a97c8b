#include "tools/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

namespace plumb {

DrawOptions terminal_draw_options() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {.width = size.ws_col, .color = true};
}

void print_answer(std::string_view text) {
  fmt::print(stdout, "{}", text);
}

void print_note(std::string_view text) {
  std::fflush(stdout);  // what was answered before stands before the note, wherever the two go
  fmt::print(stderr, "{}\n", text);
}

Progress::Progress(std::string_view what) : what_(what), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_ && drawn_ >= 0) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(double share) {
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  if (!terminal_ || filled == drawn_) return;
  drawn_ = filled;
  fmt::print(stderr, "\r{} [{}{}]", what_, std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(kWidth - filled), ' '));
  std::fflush(stderr);
}

}  // namespace plumb
