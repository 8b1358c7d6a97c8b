#include "planner/observe/explaining_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "planner/search/cluster_figures.h"
#include "planner/search/evaluate_plan.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kPrecise = 1e-4;      ///< of the step's logarithm
constexpr double kCountsAtAll = 1e-3;  ///< change of the step's logarithm over the whole range of a factor
constexpr int kMostSimulations = 24;
constexpr double kSlopeOver = 0.02;  ///< of a factor's logarithm

/// Returns the root mean square of log(predicted / measured) over the parts of a step; nothing where there are none.
std::optional<double> left_over_of(const ComparedRun& compared) {
  double squares = 0;
  int count = 0;
  for (const ComparedPart& of : compared.parts) {
    if (!(of.most.predicted > 0) || !(of.most.measured > 0)) continue;
    const double error = std::log(of.most.predicted / of.most.measured);
    squares += error * error, ++count;
  }
  if (count == 0) return std::nullopt;
  return std::sqrt(squares / count);
}

/// A point on the way of a figure: the logarithms of its factor, and of predicted over measured.
struct Tried {
  double factor = 0;
  double error = 0;
};

class FigureSearch {
 public:
  FigureSearch(const Plan& plan, const ObservedRun& run, const ClusterFigure& figure)
      : plan_(plan), run_(run), figure_(figure) {}

  /// Returns the figure's answer; `now` is the error at a factor of 1.
  std::optional<ExplainingFigure> solve(double now) {
    const std::optional<std::pair<Tried, Tried>> bracket = bracket_around_zero(now);
    if (!bracket) return std::nullopt;
    auto [below, above] = *bracket;
    Tried best = std::abs(below.error) < std::abs(above.error) ? below : above;
    for (int i = 0; i < kMostSimulations && std::abs(best.error) > kPrecise; ++i) {
      best = at((below.factor + above.factor) / 2);
      ((best.error > 0) == (above.error > 0) ? above : below) = best;
    }
    ExplainingFigure found{.figure = figure_.name, .factor = std::exp(best.factor), .left_over = left_over_};
    // Prices go in steps here and there, so that the slope is taken over a few per cent.
    const double slope = (at(best.factor + kSlopeOver).error - at(best.factor - kSlopeOver).error) / (2 * kSlopeOver);
    if (run_.step.standard_error && slope != 0)
      found.standard_error = found.factor * *run_.step.standard_error / run_.step.value / std::abs(slope);
    return found;
  }

 private:
  /// Returns two points between which the error is 0; nothing if no factor reaches that.
  std::optional<std::pair<Tried, Tried>> bracket_around_zero(double now) {
    for (const double end : {-std::log(kMostFactor), std::log(kMostFactor)}) {
      const Tried far = at(end);
      if (std::abs(far.error - now) < kCountsAtAll || (far.error > 0) == (now > 0)) continue;
      return std::pair{Tried{0, now}, far};
    }
    return std::nullopt;
  }

  Tried at(double factor) {
    Plan plan = plan_;
    plan.cluster = with_figure(plan.cluster, figure_, std::exp(factor));
    Pricing pricing(plan.model, plan.cluster, plan.training);
    const Evaluation evaluation =
        evaluate(pricing, plan, std::nullopt,
                 {.simulation = {.record_timeline = !run_.operations.empty()}, .network = NetworkOptions{}});
    const ComparedRun compared = compare_run(pricing, evaluation, run_);
    left_over_ = left_over_of(compared);
    return {factor, std::log(compared.step.predicted / compared.step.measured)};
  }

  const Plan& plan_;
  const ObservedRun& run_;
  const ClusterFigure& figure_;
  std::optional<double> left_over_;  ///< of the last point
};

}  // namespace

std::vector<ExplainingFigure> explaining_figures(const Plan& plan, const Evaluation& evaluation,
                                                 const ObservedRun& run) {
  const double now = std::log(step_time(evaluation.simulation).count() / run.step.value);
  std::vector<ExplainingFigure> found;
  if (std::abs(now) < kPrecise) return found;
  for (const ClusterFigure& figure : figures_of(plan.cluster, plan.layout.offload != Offload{})) {
    if (const auto answer = FigureSearch(plan, run, figure).solve(now)) found.push_back(*answer);
  }
  std::ranges::stable_sort(found, std::less{}, [](const ExplainingFigure& of) {
    return std::pair{of.left_over.value_or(0), std::abs(std::log(of.factor))};
  });
  return found;
}

}}  // namespace plumb::planner
