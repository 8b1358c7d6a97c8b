#pragma once
// What a person reads: answers go to stdout, notes and progress to stderr, so that `--json` keeps stdout to one
// document.

#include <chrono>
#include <future>
#include <string_view>
#include <utility>

#include "schedules/time.h"
#include "traces/draw/draw.h"

namespace plumb { inline namespace tools {

/// As wide as the terminal and in colour; 120 columns and plain where stdout is none.
DrawOptions terminal_draw_options();

/// Puts something in the place of standard streams that were closed, so that no file that is opened takes their
/// numbers, and lets a write to a pipe that nobody reads fail instead of ending the process. Called before all else.
void open_standard_streams();

/// Writes to stdout as it is. Throws InputError if it cannot be written.
void print_answer(std::string_view text);

/// Sees to it that all answers have left. Throws InputError if they cannot: a full disk, a pipe that nobody reads.
void finish_answers();

/// Writes to stderr, as a line of its own, without what a terminal should not get (tools/io/utf8.h).
void print_note(std::string_view text);

/// True if a person watches stderr.
bool shows_progress();

/// Redraws a bar on stderr, filled to `share` (0 to 1); clear_progress takes it away.
void draw_progress(std::string_view what, double share);
void clear_progress();

/// work()'s result. Where a person watches, a bar fills with the time that it is expected to take.
template <typename Work>
auto with_progress(std::string_view what, Seconds expected, Work work) {
  if (!shows_progress()) return work();
  constexpr std::chrono::milliseconds kRedrawEvery{200};
  const auto start = std::chrono::steady_clock::now();
  auto result = std::async(std::launch::async, std::move(work));
  while (result.wait_for(kRedrawEvery) != std::future_status::ready) {
    draw_progress(what, Seconds{std::chrono::steady_clock::now() - start} / expected);
  }
  clear_progress();
  return result.get();
}

}}  // namespace plumb::tools
