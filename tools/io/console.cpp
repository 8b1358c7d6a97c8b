#include "tools/io/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/io/utf8.h"

namespace plumb { inline namespace tools {
namespace {

/// A note that cannot be written is lost: it never ends the work that it is about.
void print_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

[[noreturn]] void refuse_output() {
  const int error = errno;
  throw InputError(
      fmt::format("the answer cannot be written to standard output ({}): see to where it goes, and ask again",
                  std::strerror(error)));
}

/// True for a terminal that knows no escapes: an editor's shell, a log.
bool is_dumb_terminal() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb";
}

}  // namespace

std::optional<int> terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

DrawOptions terminal_draw_options() {
  const std::optional<int> width = terminal_width();
  if (!width) return {};
  const char* no_color = std::getenv("NO_COLOR");
  return {.width = *width, .color = (no_color == nullptr || *no_color == '\0') && !is_dumb_terminal()};
}

void open_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);  // a write that nobody reads fails as any other does, and is reported
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // open() takes the lowest free number
}

void print_answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse_output();
}

void finish_answers() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output();
}

void print_note(std::string_view text) {
  std::fflush(stdout);  // earlier answers stand before the note where both go to one file
  print_to_stderr(fmt::format("{}\n", printable(text)));
}

bool shows_progress() {
  return isatty(STDERR_FILENO) == 1 && !is_dumb_terminal();
}

void draw_progress(std::string_view what, double share) {
  constexpr std::size_t kWidth = 40;
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kWidth);
  print_to_stderr(fmt::format("\r{} [{}{}]", what, std::string(filled, '#'), std::string(kWidth - filled, ' ')));
}

void draw_elapsed(std::string_view what, Seconds elapsed) {
  print_to_stderr(fmt::format("\r{}: {:.0f} s", what, elapsed.count()));
}

void clear_progress() {
  print_to_stderr("\r\x1b[K");
}

}}  // namespace plumb::tools
