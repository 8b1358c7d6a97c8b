#pragma once
// Published runs are compared with their predictions: each row is mapped and predicted.
//
//   SourceScore score = score_rows(library, {"vtrain_multi.json", rows});
//   score.step_time.mean_pct; score.skipped; score.rows
//
// A row is predicted like in `plumb simulate --links private`: its schedule is simulated with the prices of its layout,
// each transfer on links of its own. Rows of a single layer ("kind": "single transformer layer ...") are compared with
// the sums of one layer's passes.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/error_statistics.h"
#include "planner/score/measured_quantities.h"
#include "planner/score/row_mapping.h"
#include "planner/score/row_prediction.h"

namespace plumb { inline namespace planner {

/// One file of published rows.
struct PublishedRows {
  std::string file;
  std::vector<nlohmann::json> rows;
};

/// Reads {"meta", "rows": [...]}, or the list alone. Throws SpecError if there is no list of objects under "rows".
PublishedRows published_rows(const nlohmann::json& document, const std::string& file);

enum class Quantity : std::uint8_t { kStepTime, kMemory, kLayerForward, kLayerBackward };

/// Returns "step_time_s", "memory_bytes", "layer_forward_s" or "layer_backward_s".
std::string_view quantity_name(Quantity quantity);

/// One quantity of one row; a row may have several.
struct ScoredQuantity {
  std::string id;
  Quantity quantity = Quantity::kStepTime;
  std::string kind;    ///< "bf16, dense": the computing precision, and whether there are experts
  std::string source;  ///< repository or paper; the row's file where it names neither
  std::string stack;   ///< name of the framework for which it is predicted
  ErrorTraits traits;
  double predicted = 0;
  double measured = 0;
  /// Prediction of the row as printed, where a correction changed something.
  std::optional<double> predicted_uncorrected;
  std::optional<TimeComponents> components;  ///< components of step times
};

double error_pct(const ScoredQuantity& scored);

struct SkippedRow {
  std::string id;
  std::string reason;
};

/// Errors of the prediction that a run fits: runs that it refuses, and runs out of memory that it accepts.
struct FitJudgement {
  int running_rows = 0;
  std::vector<std::string> refused_running;  ///< ids
  int out_of_memory_rows = 0;
  std::vector<std::string> accepted_out_of_memory;  ///< ids
};

/// One quantity of the rows of one kind.
struct KindStatistics {
  Quantity quantity = Quantity::kStepTime;
  std::string kind;
  ErrorStatistics errors;
};

struct SourceScore {
  std::string file;
  std::vector<std::string> mappings;  ///< names of the mappings that read its rows
  int rows = 0;
  int scored = 0;  ///< rows of which some quantity was compared
  std::vector<SkippedRow> skipped;
  std::vector<ScoredQuantity> quantities;
  ErrorStatistics step_time;
  ErrorStatistics memory;
  ErrorStatistics layer_time;
  std::vector<KindStatistics> kinds;  ///< errors of times and memory, where rows are of several kinds
  std::optional<ErrorStatistics> step_time_uncorrected;  ///< errors of all rows, where any was corrected
  std::vector<PublishedError> published;                 ///< other predictors' errors on the source
  std::vector<std::string> corrections;                  ///< each with its evidence, in the order met
  std::vector<std::string> assumptions;                  ///< each with its evidence, in the order met
  std::vector<std::string> limits;                       ///< limits of the mapping
  FitJudgement fits;
  std::optional<double> rank_correlation;  ///< mean over groups of three rows or more that differ in layout only
  std::optional<double> top1_regret_pct;   ///< mean over the same groups
};

/// A row that can be predicted, as its mapping reads it.
struct ReadyRow {
  std::string id;
  const SourceMapping* mapping = nullptr;
  std::shared_ptr<const nlohmann::json> printed;
  ReadRow read;
  MeasuredQuantities measured;
};

struct ReadyRows {
  std::vector<ReadyRow> rows;
  std::vector<SkippedRow> skipped;
};

/// Returns the row's id, or FILE#INDEX (from 0).
std::string row_id(const PublishedRows& published, std::size_t index);

/// Returns the rows that measure a quantity that is predicted, and the reasons why others are left out. The library
/// must outlive them.
ReadyRows ready_rows(const ScoreLibrary& library, const PublishedRows& published);

/// Returns the measured quantities of a row with their predictions.
std::vector<ScoredQuantity> compared(const std::string& id, const RowPrediction& predicted,
                                     const MeasuredQuantities& measured);

/// Scores a file. Throws SpecError if the library is at fault (score/row_mapping.h); a faulty row is skipped with its
/// reason.
SourceScore score_rows(const ScoreLibrary& library, const PublishedRows& published);

/// Scores the files in their order, side by side on the machine's cores. Throws as score_rows.
std::vector<SourceScore> score_files(const ScoreLibrary& library, const std::vector<PublishedRows>& files);

}}  // namespace plumb::planner
