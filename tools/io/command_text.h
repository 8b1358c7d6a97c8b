#pragma once
// The command that this process was started with, to be repeated.

#include <string>

namespace plumb { inline namespace tools {

/// Keeps the words of main().
void remember_command(int argc, char** argv);

/// Returns the command as a shell takes it, "plumb" in place of the program's path.
std::string command_text();

}}  // namespace plumb::tools
