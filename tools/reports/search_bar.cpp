#include "tools/reports/search_bar.h"

#include <fmt/format.h>

#include "tools/io/console.h"
#include "tools/reports/short_layout.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

void SearchBar::show(const SearchProgress& progress) {
  constexpr std::chrono::milliseconds kRedrawEvery{200};
  const Clock::time_point now = Clock::now();
  if (now < next_ || !shows_progress()) return;
  next_ = now + kRedrawEvery;
  drawn_ = true;
  if (progress.best == nullptr) return draw_progress("searching", 0);
  draw_progress(fmt::format("best so far {} a step ({})", duration_text(seconds(progress.best->simulation.makespan)),
                            short_text(progress.best->layout)),
                progress.least / progress.best_value);
}

void SearchBar::clear() {
  if (drawn_) clear_progress();
}

}}  // namespace plumb::tools
