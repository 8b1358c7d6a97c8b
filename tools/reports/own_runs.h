#pragma once
// Plumb's own runs, predicted and then measured, are a section of the page that holds predictions against published
// ones: docs/fidelity.md.

#include <string>
#include <utility>
#include <vector>

namespace plumb { inline namespace tools {

/// The figures of one run that `plumb validate --json` prints.
struct OwnRun {
  std::string file;
  std::string title;
  std::string date;
  std::string load;
  int steps = 0;
  double predicted_s = 0;
  double measured_s = 0;  ///< the median of the steps
  double low_s = 0;       ///< the median lies from here to `high_s` with the probability `confidence_ratio`
  double high_s = 0;
  double confidence_ratio = 0;
  double fastest_s = 0;
  double slowest_s = 0;
  std::vector<std::pair<double, double>>
      peaks;  ///< [rank] predicted and measured bytes; empty where none were measured
};

/// Returns the runs of a file: one answer of `plumb validate --json`, or an array of them. Other keys than those above
/// are ignored. Throws InputError with the file, the run and the key if a key is missing or its value is not valid.
std::vector<OwnRun> read_own_runs(const std::string& path);

/// Returns a section of Markdown with a row for each run; empty if there are none.
std::string own_runs_page(const std::vector<OwnRun>& runs);

}}  // namespace plumb::tools
