#pragma once
// The command line: `plumb VERB ...`. Only the files of this folder know the option library.

namespace plumb { inline namespace tools {

/// Parses the command line, runs the verb, and prints a failure as one sentence on stderr. Returns the exit code: 0
/// done; 1 the input or the world is at fault; 2 usage; 3 the question has no feasible answer.
int run_command_line(int argc, char** argv);

}}  // namespace plumb::tools
