#include "tools/reports/search_progress.h"

#include <fmt/format.h>

#include "planner/spec/short_layout.h"
#include "tools/io/progress.h"
#include "tools/io/terminal.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

void show_search(const SearchProgress& progress) {
  if (!shows_progress() || progress.best == nullptr) return;
  set_progress(fmt::format("best so far {} a step ({})", duration_text(seconds(progress.best->simulation.makespan)),
                           short_text(progress.best->layout)),
               progress.least / progress.best_value);
}

}}  // namespace plumb::tools
