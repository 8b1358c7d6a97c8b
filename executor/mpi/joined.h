#pragma once
// Whether this process is one of several that MPI has joined, and the end of all of them. There without MPI too.

namespace plumb { inline namespace executor {

/// Whether this process has joined others, which wait for it.
bool has_joined_mpi();

/// Ends this process, and all others that it has joined, with that exit status.
[[noreturn]] void stop_mpi_ranks(int status);

}}  // namespace plumb::executor
