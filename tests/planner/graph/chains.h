#pragma once
// What the tests of chains of layers share.

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "planner/graph/chain_partition.h"

namespace plumb::test {

/// Returns the chain whose nodes take these times and nothing else.
inline Chain chain_of_times(const std::vector<double>& seconds) {
  Chain chain;
  for (const double time : seconds) chain.seconds.emplace_back(time);
  return chain;
}

/// Returns the text of a file of other programs' answers, which lie below PLUMB_SHARED.
inline std::string shared_text(const std::string& path) {
  std::ifstream file(std::string(std::getenv("PLUMB_SHARED")) + "/oracles/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace plumb::test
