#pragma once
// Reports of the zero-bubble authors' schedulers. The files lie beside a developer's checkout, not in it.

#include <sstream>
#include <string>
#include <vector>

#include "tests/shared_folder.h"

namespace plumb::test {

/// A row of zb_oracle.csv. Costs are of one chunk: F, B, W, and C for a hop.
struct ZeroBubbleRow {
  std::string scheduler;
  int ranks = 0;
  int microbatches = 0;
  double f = 0, b = 0, w = 0, c = 0;
  std::string memory_limit;  ///< "1.5p", "2p chunks(=1x)", "peak=6 chunks"
  double span = 0;
};

inline const std::string kZeroBubbleFolder = "oracles/zero_bubble/";

/// Returns the rows of zb_oracle.csv, or none where the file is not there, which the case then says
/// (tests/shared_folder.h).
inline std::vector<ZeroBubbleRow> zero_bubble_rows() {
  std::vector<ZeroBubbleRow> rows;
  std::istringstream lines(shared_text(kZeroBubbleFolder + "zb_oracle.csv").value_or(""));
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    rows.push_back({cells.at(0), std::stoi(cells[1]), std::stoi(cells[2]), std::stod(cells[3]), std::stod(cells[4]),
                    std::stod(cells[5]), std::stod(cells[6]), cells[7], std::stod(cells[8])});
  }
  return rows;
}

}  // namespace plumb::test
