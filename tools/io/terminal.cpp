#include "tools/io/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace plumb { inline namespace tools {
namespace {

std::optional<int> width_of_terminal(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

/// True for a terminal that knows no escapes: an editor's shell, a log.
bool is_dumb_terminal() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb";
}

}  // namespace

std::optional<int> terminal_width() {
  return width_of_terminal(STDOUT_FILENO);
}

std::optional<int> note_width() {
  return width_of_terminal(STDERR_FILENO);
}

DrawOptions terminal_draw_options() {
  const std::optional<int> width = terminal_width();
  if (!width) return {};
  const char* no_color = std::getenv("NO_COLOR");
  return {.width = *width, .color = (no_color == nullptr || *no_color == '\0') && !is_dumb_terminal()};
}

bool shows_progress() {
  return isatty(STDERR_FILENO) == 1 && !is_dumb_terminal();
}

}}  // namespace plumb::tools
