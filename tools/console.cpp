#include "tools/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "tools/utf8.h"

namespace plumb { inline namespace tools {

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
  fmt::print(stderr, "{}\n", printable(text));
}

bool shows_progress() {
  return isatty(STDERR_FILENO) == 1;
}

void draw_progress(std::string_view what, double share) {
  constexpr std::size_t kWidth = 40;
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r{} [{}{}]", what, std::string(filled, '#'), std::string(kWidth - filled, ' '));
  std::fflush(stderr);
}

void clear_progress() {
  fmt::print(stderr, "\r\x1b[K");
}

}}  // namespace plumb::tools
