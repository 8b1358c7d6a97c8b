#pragma once

namespace plumb { inline namespace tools {

/// Opens OpenBLAS, for verbs that multiply, before their work begins. If it does not know this processor and would
/// compute at a fraction of its speed, the program starts anew, once, with OPENBLAS_CORETYPE set; a user's own is left
/// alone. Throws InputError if there is no OpenBLAS.
void open_blas();

}}  // namespace plumb::tools
