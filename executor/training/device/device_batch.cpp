#include "executor/training/device/device_batch.h"

#include <algorithm>

#include "executor/spec/data/sample_data.h"
#include "executor/spec/data/token_batch.h"

namespace plumb { inline namespace executor {
namespace {

/// Calls fill(part, micro-batch) with each micro-batch's part of [microbatches * each].
template <class T, class Fill>
std::vector<T> filled(int microbatches, std::int64_t each, Fill fill) {
  std::vector<T> all(static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(each));
  for (int i = 0; i < microbatches; ++i)
    fill(std::span(all).subspan(static_cast<std::size_t>(i) * static_cast<std::size_t>(each),
                                static_cast<std::size_t>(each)),
         i);
  return all;
}

}  // namespace

void upload_batch(DeviceMachine& machine, const StageData& stage, const RunSpec& spec, const TrainingPlan& training,
                  int rank, int step) {
  const RankGrid& grid = training.replay.grid;
  const GridCoordinates at = coordinates_of(grid, rank);
  const int parts = std::max(1, parts_of_microbatch(grid, at.pipeline));
  const std::int64_t count = spec.microbatch / parts;
  const int microbatches = training.replay.schedule.microbatches;
  const ContextSeat context{spec.grid.context, at.context, spec.context_attention};
  const auto place = [&](int i, int slice) {
    const ContextTokens tokens = context_tokens(slice_tokens(spec.sequence, training.replay.slices, slice), context);
    return BatchPlace{.seed = spec.seed,
                      .step = step,
                      .first_sample = (at.data / parts * microbatches + i) * spec.microbatch + at.data % parts * count,
                      .count = count,
                      .sequence = spec.sequence,
                      .slice = tokens.first,
                      .second_slice = tokens.second};
  };
  const std::int64_t each = count * (spec.sequence / std::max(1, spec.grid.context));
  const SampleData& samples = spec.samples;
  const bool reads_text = spec.samples.outputs == 0;
  // A slice's tokens of all sequences, then the next one's.
  const auto for_each_slice = [&](std::span<std::int32_t> part, int i, auto fill) {
    for (int slice = 0; slice < training.replay.slices; ++slice) {
      const BatchPlace of = place(i, slice);
      const auto own = static_cast<std::size_t>(count * (of.slice.count + of.second_slice.count));
      fill(part.first(own), of);
      part = part.subspan(own);
    }
  };
  if (stage.reads_tokens())
    stage.upload_tokens(machine, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                          for_each_slice(part, i, [&](std::span<std::int32_t> own, const BatchPlace& of) {
                            fill_inputs(own, spec.text, of);
                          });
                        }));
  if (stage.reads_samples())
    stage.upload_samples(machine, filled<float>(microbatches, count * output_elements(samples.shape, {}),
                                                [&](auto part, int i) { fill_samples(part, samples, place(i, 0)); }));
  if (stage.reads_targets())
    stage.upload_targets(machine, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                           if (!reads_text) return fill_labels(part, samples, place(i, 0));
                           for_each_slice(part, i, [&](std::span<std::int32_t> own, const BatchPlace& of) {
                             fill_targets(own, spec.text, of);
                           });
                         }));
  if (stage.reads_sample_targets())
    stage.upload_sample_targets(machine, filled<float>(microbatches, count * samples.outputs, [&](auto part, int i) {
                                  fill_sample_targets(part, samples, place(i, 0));
                                }));
}

}}  // namespace plumb::executor
