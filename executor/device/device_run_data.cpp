// What the ends of the model read before a replay: the batches of all replicas.

#include <algorithm>

#include "executor/data/sample_data.h"
#include "executor/data/token_batch.h"
#include "executor/device/device_run.h"

namespace plumb {
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
  const ContextTokens tokens = context_tokens({0, spec_.sequence}, context_seat(at));
  const auto place = [&](int i) {
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
  if (stage.reads_tokens())
    stage.upload_tokens(machine_, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                          fill_inputs(part, spec_.text, place(i));
                        }));
  if (stage.reads_samples())
    stage.upload_samples(machine_, filled<float>(microbatches, count * output_elements(samples.shape, {}),
                                                 [&](auto part, int i) { fill_samples(part, samples, place(i)); }));
  if (stage.reads_targets())
    stage.upload_targets(machine_, filled<std::int32_t>(microbatches, each, [&](auto part, int i) {
                           if (reads_text) {
                             fill_targets(part, spec_.text, place(i));
                           } else {
                             fill_labels(part, samples, place(i));
                           }
                         }));
  if (stage.reads_sample_targets())
    stage.upload_sample_targets(machine_, filled<float>(microbatches, count * samples.outputs, [&](auto part, int i) {
                                  fill_sample_targets(part, samples, place(i));
                                }));
}

}  // namespace plumb
