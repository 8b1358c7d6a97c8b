#pragma once

namespace plumb { inline namespace tools {

/// Puts the first of the heap into large pages where the system has them, and keeps freed memory for later use. A
/// timeline of a million spans is 100 MiB, and fetching it 4 KiB at a time takes longer than the simulation. It must be
/// called before all other work.
void use_large_pages();

}}  // namespace plumb::tools
