#pragma once
// Answers go to stdout and notes to stderr, so that stdout holds one document under `--json`.

#include <string_view>

namespace plumb { inline namespace tools {

/// Opens /dev/null in the place of standard streams that were closed, so that no other file gets their numbers, and
/// lets a write to a pipe that nobody reads fail instead of ending the process. main() calls it before all else.
void open_standard_streams();

/// Writes a document or a picture to stdout unchanged. Throws InputError if it cannot be written.
void print_answer(std::string_view text);

/// Writes sentences and tables for a person to stdout. On a terminal, lines that are longer than it is wide are broken at
/// blanks. Throws InputError if they cannot be written.
void print_text(std::string_view text);

/// Flushes all answers. Throws InputError if they cannot be written: a full disk, a pipe that nobody reads.
void finish_answers();

/// Writes the text to stderr as a line of its own, without control characters (tools/io/utf8.h), and broken at blanks where
/// a terminal is narrower.
void print_note(std::string_view text);

}}  // namespace plumb::tools
