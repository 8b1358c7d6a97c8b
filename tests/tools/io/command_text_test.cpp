#include "tools/io/command_text.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a command is told as a shell takes it") {
  std::vector<std::string> words{"/usr/bin/plumb", "plan", "h100:16", "--layout", "tp=2|4", "it's", ""};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  remember_command(static_cast<int>(arguments.size()), arguments.data());
  CHECK(command_text() == "plumb plan h100:16 --layout 'tp=2|4' 'it'\\''s' ''");
}

}  // namespace plumb::test
