#pragma once
// Says whether MPI has joined this process with others, and ends all of them. Works in builds without MPI too.

namespace plumb { inline namespace executor {

/// Returns true if this process has joined others, which wait for it.
bool has_joined_mpi();

/// Ends this process and all others that it has joined, with that exit status.
[[noreturn]] void stop_mpi_ranks(int status);

}}  // namespace plumb::executor
