#pragma once
// The line on stderr that says how far the work under way is. It is there where a person watches stderr and the work has
// lasted a second.

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "schedules/time.h"

namespace plumb { inline namespace tools {

/// Shows the line as long as it lives. A second one beside it shows nothing.
class Progress {
 public:
  /// The line has `what`, and the time so far or, where the work is expected to take some time, a bar that fills over it.
  explicit Progress(std::string what, std::optional<Seconds> expected = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

 private:
  std::jthread clock_;  ///< redraws the line
};

/// From now on the line of the work under way has `what`, and a bar that is filled to `share` (0 to 1).
void set_progress(std::string what, double share);

/// Takes the line away, before other text is written. It comes back with the next redrawing.
void erase_progress();

/// Takes the line away for good: the answer begins.
void end_progress();

/// Returns work()'s result, and shows the line meanwhile.
template <typename Work>
auto with_progress(std::string what, std::optional<Seconds> expected, Work work) {
  const Progress progress(std::move(what), expected);
  return work();
}

}}  // namespace plumb::tools
