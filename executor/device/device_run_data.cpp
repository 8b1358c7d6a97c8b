// What the ends of the model read before a replay: the batches of all replicas.

#include <algorithm>
#include <variant>

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
  for (int lane = 0; lane < world_.lanes(); ++lane) upload_batch(step, lane);
}

void DeviceRun::upload_batch(int step, int lane) {
  const std::int64_t of_replica = schedule_.microbatches * spec_.microbatch;
  const ContextTokens slices = context_tokens({0, spec_.sequence}, context_seat(lane));
  const auto place = [&](int microbatch) {
    return BatchPlace{.seed = spec_.seed,
                      .step = step,
                      .first_sample = world_.lane(lane).data * of_replica + microbatch * spec_.microbatch,
                      .count = spec_.microbatch,
                      .sequence = spec_.sequence,
                      .slice = slices.first,
                      .second_slice = slices.second};
  };
  const std::int64_t tokens = tokens_of(work_);
  const SampleData& samples = spec_.samples;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
    const DeviceStage& own = lane_stages(lane)[stage];
    if (!is_here(static_cast<std::size_t>(schedule_.stages[stage].rank), lane)) continue;
    const bool reads_text = std::holds_alternative<HeadLayer>(spec_.stage_layers[stage].back());
    if (own.reads_tokens())
      own.upload_tokens(machine_, filled<std::int32_t>(schedule_.microbatches, tokens, [&](auto part, int i) {
                          fill_inputs(part, spec_.text, place(i));
                        }));
    if (own.reads_samples())
      own.upload_samples(machine_, filled<float>(schedule_.microbatches, output_elements(samples.shape, work_),
                                                 [&](auto part, int i) { fill_samples(part, samples, place(i)); }));
    if (own.reads_targets())
      own.upload_targets(machine_, filled<std::int32_t>(schedule_.microbatches, tokens, [&](auto part, int i) {
                           if (reads_text) {
                             fill_targets(part, spec_.text, place(i));
                           } else {
                             fill_labels(part, samples, place(i));
                           }
                         }));
    if (own.reads_sample_targets())
      own.upload_sample_targets(machine_,
                                filled<float>(schedule_.microbatches, tokens * samples.outputs,
                                              [&](auto part, int i) { fill_sample_targets(part, samples, place(i)); }));
  }
}

}  // namespace plumb
