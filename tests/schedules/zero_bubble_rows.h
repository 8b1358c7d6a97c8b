#pragma once
// What the zero-bubble authors' schedulers report. The files lie beside a developer's checkout, not in it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

/// One row of zb_oracle.csv. Costs are of one chunk: F, B, W, and C for a hop.
struct ZeroBubbleRow {
  std::string scheduler;
  int ranks = 0;
  int microbatches = 0;
  double f = 0, b = 0, w = 0, c = 0;
  std::string memory_limit;  ///< "1.5p", "2p chunks(=1x)", "peak=6 chunks"
  double span = 0;
};

/// Returns the folder of the authors' files.
inline std::filesystem::path zero_bubble_folder() {
  const char* shared = std::getenv("PLUMB_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "") / "oracles" / "zero_bubble";
}

/// Returns a file's text; "" where there is none.
inline std::string zero_bubble_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Returns the rows of zb_oracle.csv; none, and the case says so, where PLUMB_SHARED does not hold it.
inline std::vector<ZeroBubbleRow> zero_bubble_rows() {
  std::vector<ZeroBubbleRow> rows;
  std::istringstream lines(zero_bubble_file(zero_bubble_folder() / "zb_oracle.csv"));
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    rows.push_back({cells.at(0), std::stoi(cells[1]), std::stoi(cells[2]), std::stod(cells[3]), std::stod(cells[4]),
                    std::stod(cells[5]), std::stod(cells[6]), cells[7], std::stod(cells[8])});
  }
  if (rows.empty()) MESSAGE("skipped: no zb_oracle.csv (PLUMB_SHARED does not hold it)");
  return rows;
}

}  // namespace plumb::test
