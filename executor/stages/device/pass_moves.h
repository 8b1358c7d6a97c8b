#pragma once
// ZeRO 2 and 3 layer by layer in one pass (executor/parameters/layer_moves.h): the pass gathers a layer's weights
// beside the compute of the one before, and reduces a layer's gradients when they are complete. Two layers' weights and
// one layer's gradients stand at once, in front of the pass's workspace.
//
// The exchanges between copies are on the reduce stream, in the order of the passes. A pass may end before its last
// reduction has ended, which REDUCE_GRAD then stands behind.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/parameters/device/stage_parameters.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

class PassMoves {
 public:
  /// The first two outlive it. moved: the room. looks_ahead: the next layer's weights are gathered ahead.
  PassMoves(const StageParameters& parameters, CallRecorder& recorder, std::byte* moved, bool looks_ahead);

  /// Gathers the layer's weights, and starts to gather those of `next`; the calls that follow stand behind the first.
  void fetch(std::size_t layer, std::optional<std::size_t> next);
  /// Fills the layer's gradients with zeros, once the gradients that had the place before are reduced.
  void open(std::size_t layer);
  /// Keeps the gradients that I has made, which are those of vectors, until W; and takes them back.
  void leave_vectors(std::size_t layer);
  void take_vectors(std::size_t layer);
  /// Reduces the layer's gradients.
  void reduce(std::size_t layer);

 private:
  void begin_gather(std::size_t layer);

  const StageParameters& parameters_;
  CallRecorder& recorder_;
  std::byte* const moved_;
  const bool looks_ahead_;
  std::optional<std::size_t> ahead_;  // layer whose weights are gathered ahead
  std::int32_t gather_ = -1;          // piece of that gather
  std::int32_t reduction_ = -1;       // piece that has reduced the gradients in the place last; -1: none
};

}}  // namespace plumb::executor
