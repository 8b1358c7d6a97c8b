#include "planner/score/row_prediction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
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

/// Returns the mean duration of `op` over the stages.
Seconds mean_duration(const CostTable& costs, Op op) {
  Seconds sum{0};
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    sum += to_seconds(duration_of(costs, {.op = op, .stage = static_cast<int>(stage)}));
  }
  return sum / std::max<double>(1, static_cast<double>(costs.stages.size()));
}

/// Evaluates a step in the order of Qi et al. 2024: F, I, W and hops are timed, and their means over the ranks order the
/// step.
Evaluation evaluate_in_searched_order(Pricing& pricing, const RowQuestion& question) {
  Layout layout = question.layout;
  layout.schedule = "zb-h1";
  const CostTable costs = cost_table(price_layout(pricing, layout, order_of(pricing.training(), layout)));
  const StageCosts& middle = costs.stages[costs.stages.size() / 2];
  const LinkCost& hop = link_between(costs, 0, 1);
  const double kept = std::max(1.0, static_cast<double>(middle.memory.forward_bytes));
  const ScheduleParameters parameters{
      .ranks = layout.pipeline,
      .microbatches = static_cast<int>(microbatches_of(pricing.training(), layout)),
      .memory_ratio = *question.order_memory,
      .released_at_input_grad_ratio = static_cast<double>(middle.memory.released_at_input_grad_bytes) / kept,
      .costs = {.forward = {mean_duration(costs, Op::kForward)},
                .input_grad = {mean_duration(costs, Op::kInputGrad)},
                .weight_grad = {mean_duration(costs, Op::kWeightGrad)},
                .hop_latency = hop.latency +
                               Seconds{static_cast<double>(middle.activation_message_bytes) / hop.bytes_per_second}}};
  const Schedule order = make_schedule("zb-auto", parameters);
  return evaluate(pricing, layout, price_layout(pricing, layout, order), order,
                  {.simulation = {.validate = false, .record_timeline = false}});
}

/// Predicts the step. Where steps are not synchronised it is the longest time of a rank between its first action and
/// the end of its optimizer.
RowPrediction predict_step(const RowQuestion& question, bool of_device, bool with_components) {
  Pricing pricing(question.model, question.cluster, question.training);
  const bool searched = question.order_memory && question.layout.pipeline > 1;
  const Evaluation evaluation = searched                       ? evaluate_in_searched_order(pricing, question)
                                : question.unsynchronised_step ? evaluate(pricing, question.layout)
                                                               : evaluate_sums(pricing, question.layout);
  const Simulation& simulation = evaluation.simulation;
  const Seconds step = to_seconds(question.unsynchronised_step ? longest_span(simulation) : simulation.makespan);
  RowPrediction result{.step_seconds = step.count(),
                       .bytes_by_pipeline_rank = simulation.peak_memory_bytes,
                       .fits = !memory_shortfall(simulation.peak_memory_bytes, question.cluster.device)};
  if (of_device) {
    for (std::int64_t& bytes : result.bytes_by_pipeline_rank) bytes += question.cluster.device.reserved_bytes;
  }
  if (with_components) {
    result.components = time_components(pricing, evaluation, step);
  }
  return result;
}

/// True if the question is of full recomputation that may be of fewer layers.
bool may_rebuild_fewer(const RowQuestion& question) {
  const std::optional<StackSpec>& stack = question.training.stack;
  return question.open_recompute && question.layout.recompute == Recompute::kFull && stack &&
         stack->can.recompute_layers;
}

/// Returns the question, whose layout fits, with the fewest layers of each stage rebuilt that fit.
RowQuestion with_fewest_rebuilt(RowQuestion question, const MeasuredQuantities& measured) {
  const int parts = question.layout.pipeline * question.layout.chunks;
  const auto all = static_cast<int>((question.model.layers + parts - 1) / parts);
  int fewest = 1, fits = all;
  while (fewest < fits) {
    question.layout.recompute_layers = std::midpoint(fewest, fits);
    if (predict_row(question, measured).fits)
      fits = question.layout.recompute_layers;
    else
      fewest = question.layout.recompute_layers + 1;
  }
  question.layout.recompute_layers = fits == all ? 0 : fits;
  return question;
}

/// Returns true if `a` is the better choice.
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
  if (questions.size() == 1) return {.prediction = predict_row(questions.front(), measured, with_components)};
  std::vector<RowPrediction> predictions;
  for (const RowQuestion& question : questions) predictions.push_back(predict_row(question, measured));
  const auto first = std::ranges::min_element(predictions, better);
  const auto best = static_cast<std::size_t>(first - predictions.begin());
  ChosenPrediction chosen{.index = best, .prediction = *first};
  RowQuestion meant = questions[best];
  if (chosen.prediction.fits && may_rebuild_fewer(meant)) {  // without recomputation nothing fits
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (!may_rebuild_fewer(questions[i]) || !predictions[i].failure.empty() || !predictions[i].fits) continue;
      RowQuestion fewer = with_fewest_rebuilt(questions[i], measured);
      RowPrediction prediction = predict_row(fewer, measured);
      if (!better(prediction, chosen.prediction)) continue;
      chosen = {.index = i, .prediction = std::move(prediction)};
      meant = std::move(fewer);
    }
  }
  if (with_components) chosen.prediction = predict_row(meant, measured, true);
  return chosen;
}

}}  // namespace plumb::planner
