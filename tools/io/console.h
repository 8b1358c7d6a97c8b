#pragma once
// Answers go to stdout, and notes and progress to stderr, so that stdout holds one document under `--json`.

#include <chrono>
#include <future>
#include <optional>
#include <string_view>
#include <utility>

#include "schedules/time.h"
#include "traces/draw/draw.h"

namespace plumb { inline namespace tools {

/// Returns the columns of the terminal that answers go to; nothing where stdout is no terminal.
std::optional<int> terminal_width();

/// Returns the width of the terminal, in colour unless NO_COLOR (no-color.org) is set or the terminal is dumb; 120
/// columns without colour where stdout is no terminal.
DrawOptions terminal_draw_options();

/// Opens /dev/null in the place of standard streams that were closed, so that no other file gets their numbers, and
/// lets a write to a pipe that nobody reads fail instead of ending the process. main() calls it before all else.
void open_standard_streams();

/// Writes the text to stdout unchanged. Throws InputError if it cannot be written.
void print_answer(std::string_view text);

/// Flushes all answers. Throws InputError if they cannot be written: a full disk, a pipe that nobody reads.
void finish_answers();

/// Writes the text to stderr as a line of its own, without control characters (tools/io/utf8.h).
void print_note(std::string_view text);

/// True if a person watches stderr on a terminal that can redraw a line.
bool shows_progress();

/// Redraws a bar on stderr, filled to `share` (0 to 1); clear_progress takes it away.
void draw_progress(std::string_view what, double share);
void clear_progress();

/// Redraws the time that something has taken, in the place of a bar.
void draw_elapsed(std::string_view what, Seconds elapsed);

/// Returns work()'s result. Where a person watches stderr, a bar fills over the time that the work is expected to take;
/// where none is expected, its time so far is shown.
template <typename Work>
auto with_progress(std::string_view what, std::optional<Seconds> expected, Work work) {
  if (!shows_progress()) return work();
  constexpr std::chrono::milliseconds kRedrawEvery{200};
  const auto start = std::chrono::steady_clock::now();
  auto result = std::async(std::launch::async, std::move(work));
  while (result.wait_for(kRedrawEvery) != std::future_status::ready) {
    const Seconds elapsed{std::chrono::steady_clock::now() - start};
    expected ? draw_progress(what, elapsed / *expected) : draw_elapsed(what, elapsed);
  }
  clear_progress();
  return result.get();
}

}}  // namespace plumb::tools
