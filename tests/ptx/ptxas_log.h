#pragma once
// The figures that `ptxas -v` prints of each kernel.

#include <map>
#include <string>
#include <string_view>

namespace plumb::test::ptx {

struct PtxasFigures {
  int registers = 0;      ///< of a thread
  int spilled_bytes = 0;  ///< of a thread, stored and loaded
};

/// Returns the figures by kernel (mangled names).
std::map<std::string, PtxasFigures, std::less<>> ptxas_figures(std::string_view log);

}  // namespace plumb::test::ptx
