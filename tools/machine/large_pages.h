#pragma once

namespace plumb { inline namespace tools {

/// Lets the first of the heap lie in large pages where the system has them, and what is freed stay for what comes next:
/// a timeline of a million spans is 100 MiB, and fetching them 4 KiB at a time takes longer than the simulation. Called
/// before all work.
void use_large_pages();

}}  // namespace plumb::tools
