// What the ends of the model read before a replay: the batches of all replicas.

#include <algorithm>

#include "executor/data/sample_data.h"
#include "executor/data/token_batch.h"
#include "executor/device/device_run.h"

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

void DeviceRun::upload_batch(int step) {
  for_each_stage([&](int rank, const DeviceStage& stage) {
    if (stage.reads_tokens() || stage.reads_samples() || stage.ends_model()) upload_batch(step, rank, stage);
  });
}

void DeviceRun::upload_batch(int step, int rank, const DeviceStage& stage) const {
  const RankGrid& grid = training_.replay.grid;
  const GridCoordinates at = coordinates_of(grid, rank);
  const int parts = std::max(1, parts_of_microbatch(grid, at.pipeline));
  const std::int64_t count = spec_.microbatch / parts;
  const auto place = [&](int i, int slice) {
    const ContextTokens tokens =
        context_tokens(slice_tokens(spec_.sequence, training_.replay.slices, slice), context_seat(at));
    return BatchPlace{
        .seed = spec_.seed,
        .step = step,
        .first_sample = (at.data / parts * schedule_.microbatches + i) * spec_.microbatch + at.data % parts * count,
        .count = count,
        .sequence = spec_.sequence,
        .slice = tokens.first,
        .second_slice = tokens.second};
  };
  const std::int64_t each = count * work_.sequence;
  const int microbatches = schedule_.microbatches;
  const SampleData& samples = spec_.samples;
  const bool reads_text = spec_.samples.outputs == 0;
  // A slice's tokens of all sequences, then the next one's.
  const auto for_each_slice = [&](std::span<std::int32_t> part, int i, auto fill) {
    for (int slice = 0; slice < training_.replay.slices; ++slice) {
      const BatchPlace of = place(i, slice);
      const auto own = static_cast<std::size_t>(count * (of.slice.count + of.second_slice.count));
      fill(part.first(own), of);
      part = part.subspan(own);
    }
  };
  if (stage.reads_tokens())
    stage.upload_tokens(machine_, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                          for_each_slice(part, i, [&](std::span<std::int32_t> own, const BatchPlace& of) {
                            fill_inputs(own, spec_.text, of);
                          });
                        }));
  if (stage.reads_samples())
    stage.upload_samples(machine_, filled<float>(microbatches, count * output_elements(samples.shape, {}),
                                                 [&](auto part, int i) { fill_samples(part, samples, place(i, 0)); }));
  if (stage.reads_targets())
    stage.upload_targets(machine_, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                           if (!reads_text) return fill_labels(part, samples, place(i, 0));
                           for_each_slice(part, i, [&](std::span<std::int32_t> own, const BatchPlace& of) {
                             fill_targets(own, spec_.text, of);
                           });
                         }));
  if (stage.reads_sample_targets())
    stage.upload_sample_targets(machine_, filled<float>(microbatches, count * samples.outputs, [&](auto part, int i) {
                                  fill_sample_targets(part, samples, place(i, 0));
                                }));
}

}}  // namespace plumb::executor
