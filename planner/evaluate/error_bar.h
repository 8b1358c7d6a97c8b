#pragma once
// How far off a prediction may be: an interval in which four of five measurements lie, from the residuals of published
// runs (score/fit_error_bars.h).
//
//   const ErrorBars bars = error_bars_from_json(json, "error_bars.json");
//   const ErrorTraits traits = error_traits(model, cluster, training, FrameworkKnown::kAssumed);
//   interval_of(step_seconds, bars.step_time, traits)   // {.low = ..., .high = ...}
//
// The logarithm of measured / predicted is taken to be spread around `shift` by a scale that depends on the traits. The
// interval is `factor` scales wide on either side; the factor is that quantile of the residuals' scaled sizes which
// covers 80 %, with equal weight for each source of runs.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// How well the framework that trains is known.
enum class FrameworkKnown : std::uint8_t {
  kNamed,    ///< it is named, and described by a stack
  kAssumed,  ///< nothing is named: that which is usual is assumed (spec/assumed_stack.h)
  kUnknown,  ///< what is named was never compared with runs: another framework, or the user's own description
  kOwn,      ///< Plumb's own executor on a cluster whose kernels were measured
};
inline constexpr int kFrameworkKnownCount = 4;

/// Returns "named", "assumed", "unknown" or "own".
std::string_view framework_known_name(FrameworkKnown known);

/// The facts of a prediction that decide how far off it may be.
struct ErrorTraits {
  FrameworkKnown framework = FrameworkKnown::kNamed;
  bool fp8 = false;
  bool experts = false;
  int devices = 1;
  std::string device;  ///< DeviceSpec::name; of several sites the cluster's, which no run has
};

ErrorTraits error_traits(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                         FrameworkKnown framework);

/// The spread of one quantity's residuals.
struct ErrorScale {
  std::array<double, kFrameworkKnownCount> shift{};      ///< [FrameworkKnown] median of log(measured / predicted)
  std::array<double, kFrameworkKnownCount> log_scale{};  ///< [FrameworkKnown]
  // These are added to log_scale, but not for Plumb's own executor.
  double fp8 = 0;
  double experts = 0;
  double tenfold_doubling = 0;  ///< for each ten doublings of the devices beyond 8
  double new_device = 0;        ///< on a device of which fewer than two sources have runs
  double factor = 1;
  int rows = 0;  ///< residuals behind it
  int sources = 0;

  friend bool operator==(const ErrorScale&, const ErrorScale&) = default;
};

struct ErrorBars {
  ErrorScale step_time;
  ErrorScale memory;
  std::vector<std::string> seen_devices;  ///< names of devices of which two sources or more have runs

  friend bool operator==(const ErrorBars&, const ErrorBars&) = default;
};

/// An interval that covers four of five measurements.
struct PredictionInterval {
  double low = 0;
  double high = 0;

  friend bool operator==(const PredictionInterval&, const PredictionInterval&) = default;
};

/// Returns the natural logarithm of the scale.
double log_scale_of(const ErrorScale& scale, const ErrorTraits& traits, bool seen_device);

PredictionInterval interval_of(double predicted, const ErrorScale& scale, const ErrorTraits& traits, bool seen_device);

/// The intervals of a step's time in seconds and of the fullest rank's memory in bytes.
struct PredictionIntervals {
  PredictionInterval step_time;
  PredictionInterval memory;

  friend bool operator==(const PredictionIntervals&, const PredictionIntervals&) = default;
};
PredictionIntervals intervals_of(const ErrorBars& bars, const ErrorTraits& traits, double step_seconds,
                                 double memory_bytes);

/// The JSON form has every member by its name here, those by FrameworkKnown as objects by its names. Reading throws
/// SpecError with the place.
ErrorBars error_bars_from_json(const nlohmann::json& json, const std::string& place);
nlohmann::ordered_json to_json(const ErrorBars& bars);

}}  // namespace plumb::planner
