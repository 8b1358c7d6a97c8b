#pragma once
// A process for each rank of a run on the GPUs of this machine, as mpirun would start them. A GPU has a process of its
// own, since a launch that waits in one thread of a process may hold locks of CUDA that another needs.

namespace plumb { inline namespace tools {

/// Starts this process's own command once for each rank, with --board and --rank behind its arguments, and returns when
/// all have ended. The ranks report, and say what went wrong, themselves. Throws RunAborted if one of them has failed,
/// and RunError if one was ended by a signal, after it has ended the others.
void run_rank_processes(int ranks);

}}  // namespace plumb::tools
