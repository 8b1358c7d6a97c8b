#pragma once

namespace plumb { inline namespace tools {

/// Starts this program anew, once, with OPENBLAS_CORETYPE set, if OpenBLAS does not know this processor and would
/// compute at a fraction of its speed. Returns otherwise. The user's own OPENBLAS_CORETYPE is left unchanged.
void restart_with_better_blas_core(char** argv);

}}  // namespace plumb::tools
