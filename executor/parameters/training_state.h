#pragma once
// The contents of a checkpoint: all that training needs to go on as if it had not stopped. Parameters are stored whole,
// by layer of the model, so that any layout can resume from them. Data and random numbers follow from step and seed.
//
//   const std::string bytes = to_bytes(state);  // a line with the format number, a JSON manifest, values, a checksum
//   TrainingState state = training_state_from_bytes(bytes, "checkpoint");

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/parameters/step_scale.h"
#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// A field of the optimizer's state of one parameter (executor/parameters/optimizer_state.h).
struct SavedField {
  std::string name;
  std::vector<std::byte> bytes;

  friend bool operator==(const SavedField&, const SavedField&) = default;
};

struct SavedParameter {
  std::string name;  ///< "3.qkv.weight": the layer's number in the model, and the parameter's name
  std::vector<std::int64_t> shape;
  std::vector<float> weights;  ///< fp32 values, even where weights are stored in 16 bits
  std::vector<SavedField> fields;

  friend bool operator==(const SavedParameter&, const SavedParameter&) = default;
};

struct TrainingState {
  /// The facts that must be the same for losses to go on: the optimizer, the weights' precision, the seed, the batch,
  /// the text.
  std::vector<std::pair<std::string, std::string>> facts;
  std::int64_t steps = 0;    ///< replays that are done
  std::int64_t updates = 0;  ///< updates of the weights; skipped steps are none
  LossScale loss_scale;
  std::vector<std::vector<SavedParameter>> parameters;  ///< [layer of the model][parameter]

  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

/// Returns the state of that run with zeros for every value: room for its ranks to write into.
TrainingState room_for_state(const RunSpec& spec);

/// Throws InputError in one sentence naming `place` if `saved` is of another model or has other facts than `wanted`.
void require_same_training(const TrainingState& saved, const TrainingState& wanted, const std::string& place);

std::string to_bytes(const TrainingState& state);

/// Reads a checkpoint. Throws InputError naming `place` if the bytes are no checkpoint, of a newer format
/// (schedules/forms/file_format.h), cut short or damaged.
TrainingState training_state_from_bytes(std::string_view bytes, const std::string& place);

}}  // namespace plumb::executor
