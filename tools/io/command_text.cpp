#include "tools/io/command_text.h"

#include <string_view>

namespace plumb { inline namespace tools {
namespace {

std::string remembered = "plumb";

/// Returns the word in quotes where a shell would read it otherwise.
std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

void remember_command(int argc, char** argv) {
  remembered = "plumb";
  for (int i = 1; i < argc; ++i) remembered += " " + quoted(argv[i]);
}

std::string command_text() {
  return remembered;
}

}}  // namespace plumb::tools
