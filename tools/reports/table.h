#pragma once
// Tables for people: aligned columns under a ruled head.

#include <string>
#include <vector>

namespace plumb { inline namespace tools {

struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  ///< each as long as the head
};

/// Columns as wide as their widest cell, two blanks between them, numbers (cells that begin with a digit, '+' or '-')
/// to the right, the rest to the left; a line of dashes under the head. Ends in a newline.
std::string to_text(const TextTable& table);

/// Comma-separated, cells with commas, quotes or line breaks quoted (RFC 4180).
std::string to_csv(const TextTable& table);

/// "1.234 s", "12.3 ms", "45.6 us": three digits and the unit that suits.
std::string duration_text(double seconds);

/// "12.3 GiB", "4.00 MiB", "17 B".
std::string bytes_text(double bytes);

/// "8.03 B", "1.24 M": three digits of a number of parameters.
std::string parameters_text(double parameters);

}}  // namespace plumb::tools
