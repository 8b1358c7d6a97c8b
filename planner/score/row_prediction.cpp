#include "planner/score/row_prediction.h"

#include "planner/search/bounds.h"
#include "planner/search/predict.h"
#include "schedules/error.h"

namespace plumb {
namespace {

RowPrediction predict_layer(const RowQuestion& question) {
  Pricing pricing(question.model, question.cluster, question.training);
  const auto& groups = pricing.placements(question.layout).inner.front();
  const auto kind = static_cast<std::size_t>(pricing.kind_of_layer()[pricing.kind_of_layer().size() / 2]);
  const LayerPrice& price = pricing.layer_prices(question.layout, groups)[kind];
  PassPrice backward = whole_backward(price);
  if (question.layout.recompute == Recompute::kSelective) backward += price.rebuild_selective;
  if (question.layout.recompute == Recompute::kFull) backward += price.rebuild_full;
  return {.layer_forward_seconds = total(price.forward).count(), .layer_backward_seconds = total(backward).count()};
}

RowPrediction predict_step(const RowQuestion& question, bool of_device, bool with_components) {
  Pricing pricing(question.model, question.cluster, question.training);
  const Predicted predicted = predict(pricing, question.layout);
  const Prediction& prediction = predicted.prediction;
  RowPrediction result{.step_seconds = prediction.step_time.count(),
                       .bytes_by_pipeline_rank = prediction.peak_memory_bytes,
                       .fits = !memory_shortfall(prediction.peak_memory_bytes, question.cluster.device)};
  if (of_device) {
    for (std::int64_t& bytes : result.bytes_by_pipeline_rank) bytes += question.cluster.device.reserved_bytes;
  }
  if (with_components) {
    result.components = time_components(pricing, question.layout, predicted.priced, prediction.step_time);
  }
  return result;
}

/// Whether `a` is the better choice.
bool better(const RowPrediction& a, const RowPrediction& b) {
  if (!b.failure.empty() || !a.failure.empty()) return a.failure.empty() && !b.failure.empty();
  if (a.fits != b.fits) return a.fits;
  return a.step_seconds < b.step_seconds;
}

}  // namespace

RowPrediction predict_row(const RowQuestion& question, const MeasuredQuantities& measured, bool with_components) {
  try {
    const bool layer = measured.layer_forward || measured.layer_backward;
    return layer ? predict_layer(question) : predict_step(question, measured.memory_of_device, with_components);
  } catch (const SpecError& error) {
    return {.failure = error.what()};
  } catch (const ScheduleError& error) {
    return {.failure = error.what()};
  }
}

ChosenPrediction fastest_prediction(const std::vector<RowQuestion>& questions, const MeasuredQuantities& measured,
                                    bool with_components) {
  ChosenPrediction best{.prediction = predict_row(questions.front(), measured, with_components)};
  for (std::size_t i = 1; i < questions.size(); ++i) {
    RowPrediction other = predict_row(questions[i], measured, with_components);
    if (better(other, best.prediction)) best = {.index = i, .prediction = std::move(other)};
  }
  return best;
}

}  // namespace plumb
