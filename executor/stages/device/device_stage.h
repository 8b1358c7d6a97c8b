#pragma once
// A stage of layers on a device: its parts (parameters, slices, data, ends of a tied table), its passes, and its part
// of the optimizer's step.

#include <cstdint>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/parameters/device/device_stage_options.h"
#include "executor/parameters/device/stage_parameters.h"
#include "executor/parameters/device/tied_tables.h"
#include "executor/parameters/model_values.h"
#include "executor/program/calls/recorded_calls.h"
#include "executor/stages/device/stage_data.h"
#include "executor/stages/device/stage_pass.h"
#include "executor/stages/device/stage_slices.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

class DeviceStage {
 public:
  explicit DeviceStage(const DeviceStageOptions& options);

  const StageParameters& parameters() const { return parameters_; }
  const StageSlices& slices() const { return slices_; }
  const StageData& data() const { return data_; }

  /// Bytes by kind, with which the schedule's arena is planned.
  StageMemory memory() const;
  /// [micro-batch] the same, where micro-batches are not alike; empty: memory() is that of all.
  std::vector<StageMemory> microbatch_memory() const;
  /// Bytes of everything that stays on the device for the whole run.
  std::int64_t held_bytes() const;

  /// Allocates, and uploads the first weights: the initial ones, or those with which a training goes on. Where
  /// gradients are captured, the optimizer's step copies those that it consumes.
  void settle(DeviceMachine& machine, bool capture_gradients = false);

  // Calls of a replay.

  void forward(CallRecorder& recorder, const DevicePass& pass) const;
  void recompute(CallRecorder& recorder, const DevicePass& pass) const;
  void input_grad(CallRecorder& recorder, const DevicePass& pass) const;
  void weight_grad(CallRecorder& recorder, const DevicePass& pass) const;
  void backward(CallRecorder& recorder, const DevicePass& pass) const;
  /// Fills the gradients of whole sequences with zeros, before the first I that adds to them.
  void open_sequence_gradients(DeviceKernels& kernels, float* gradients) const;

  // Before the first step, once gradients are complete (executor/training/device/joint_step.h).

  ElementRange tied_table(ModelEnd end) const { return tied_.table(end); }
  /// Address of an end's gradient [count of tied_table()], once gather_tied() has run; finish_tied() takes the own
  /// share of the ends' sum back.
  float* tied_gradients(ModelEnd end) const { return tied_.gradients(parameters_.common(), end); }
  void gather_tied(CallRecorder& recorder, ModelEnd end) const { tied_.gather(recorder, parameters_.common(), end); }
  void finish_tied(DeviceKernels& kernels, ModelEnd end) const { tied_.finish(kernels, parameters_.common(), end); }
  /// partials: [parameters().partial_count()] sums of squares of the gradients that this rank measures, so that over
  /// all ranks each element counts once.
  void measure_gradients(DeviceKernels& kernels, float* partials) const;

  /// whole: the measure of all gradients, where the step depends on it. step: its number in the replay. replaced:
  /// [version_bytes()] gets the weights as they were, unless it is null. workspace: [update_workspace_bytes()]
  void optimizer_step(CallRecorder& recorder, int step, std::byte* replaced, const StepNumbers* whole,
                      std::byte* workspace) const;

  // Between replays.

  /// Uploads the numbers of the replay's steps.
  void begin_step(DeviceMachine& machine, int replay, float loss_scale);
  /// Returns the numbers as the steps have left them; steps that were not skipped count.
  StepNumbers end_step(DeviceMachine& machine);

  /// Writes gradients as they reached the optimizer in one step of the last replay, behind end_step(), into the model's
  /// where this rank speaks for them: fp32, [layer of the model][parameter][element].
  void copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const;
  /// Writes weights, the optimizer's state and the number of updates into a checkpoint, where this rank speaks for
  /// them.
  void save(DeviceMachine& machine, TrainingState& state) const;

 private:
  PassStage pass_stage() const;

  DeviceStageOptions options_;
  StageParameters parameters_;
  StageSlices slices_;
  StageData data_;
  TiedTables tied_;
  std::vector<float> constants_;  // of the layers; behind them the optimizer's
  std::int64_t updates_ = 0;
  StepNumbers last_numbers_;

  // On the device.
  float* device_constants_ = nullptr;
  StepNumbers* numbers_ = nullptr;  // [steps]
};

}}  // namespace plumb::executor
