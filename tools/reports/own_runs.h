#pragma once
// Plumb's own runs, predicted and then measured, as a part of the page that holds predictions against what others have
// published: docs/fidelity.md.

#include <string>
#include <vector>

namespace plumb { inline namespace tools {

/// What `plumb validate --json` says of one run.
struct OwnRun {
  std::string title;
  std::string date;
  std::string load;
  int steps = 0;
  double predicted_s = 0;
  double measured_s = 0;  ///< the median of the steps
  double low_s = 0;       ///< between these it lies, with that probability
  double high_s = 0;
  double confidence_ratio = 0;
  double fastest_s = 0;
  double slowest_s = 0;
};

/// The runs of a file: one answer of `plumb validate --json`, or an array of them; keys beyond those above are not
/// looked at. Throws InputError naming the file, the run and the key if one is missing or of another kind.
std::vector<OwnRun> read_own_runs(const std::string& path);

/// A section of Markdown, a row a run; empty where there are none.
std::string own_runs_page(const std::vector<OwnRun>& runs);

}}  // namespace plumb::tools
