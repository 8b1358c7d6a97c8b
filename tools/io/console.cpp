#include "tools/io/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/io/progress.h"
#include "tools/io/terminal.h"
#include "tools/io/utf8.h"
#include "tools/io/wrapped.h"

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

std::string folded_at(std::string_view text, const std::optional<int>& width) {
  return width ? folded(text, static_cast<std::size_t>(*width)) : std::string(text);
}

}  // namespace

void open_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);  // a write that nobody reads fails as any other does, and is reported
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // open() takes the lowest free number
}

void print_answer(std::string_view text) {
  end_progress();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse_output();
}

void print_text(std::string_view text) {
  print_answer(folded_at(text, terminal_width()));
}

void finish_answers() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output();
}

void print_note(std::string_view text) {
  std::fflush(stdout);  // earlier answers stand before the note where both go to one file
  erase_progress();
  print_to_stderr(folded_at(printable(text), note_width()) + "\n");
}

}}  // namespace plumb::tools
