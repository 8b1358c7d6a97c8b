#pragma once
// Tables with aligned columns under a head with a rule.

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  ///< each row is as long as the head
};

/// Returns the table as text that ends in a newline. A column is as wide as its widest cell, and two blanks separate
/// columns. Numbers (cells that begin with a digit, '+' or '-') stand to the right and other cells to the left. A line
/// of dashes is under the head. Columns beyond the folding width follow in further blocks, each of which repeats the
/// first column, and a cell of more than half of that width is broken.
std::string to_text(const TextTable& table);

/// Sets the width at which all tables fold from now on: a terminal's. They do not fold before it is called.
void fold_tables_at(int width);

/// Returns the table as CSV; cells with commas, quotes or line breaks are quoted (RFC 4180).
std::string to_csv(const TextTable& table);

/// Returns "1.23 s", "12.3 ms" or "45.6 us": three digits and the unit that suits.
std::string duration_text(double seconds);

/// Returns "12.3 GiB", "4.00 MiB" or "17 B".
std::string bytes_text(double bytes);

/// Returns "8.03 B" or "1.24 M": three digits of a number of parameters.
std::string parameters_text(double parameters);

}}  // namespace plumb::tools
