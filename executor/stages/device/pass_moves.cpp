#include "executor/stages/device/pass_moves.h"

namespace plumb { inline namespace executor {

PassMoves::PassMoves(const StageParameters& parameters, CallRecorder& recorder, std::byte* moved, bool looks_ahead)
    : parameters_(parameters), recorder_(recorder), moved_(moved), looks_ahead_(looks_ahead) {}

void PassMoves::begin_gather(std::size_t layer) {
  recorder_.go_aside(DeviceStream::kReduce);
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).gather(recorder_);
  if (parameters_.common().layout().is_half()) {
    recorder_.open_piece();
    for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).widen(recorder_);
  }
  ahead_ = layer;
  gather_ = recorder_.come_back();
}

void PassMoves::fetch(std::size_t layer, std::optional<std::size_t> next) {
  if (!parameters_.common().layout().shares().gathers_layers() || !parameters_.has_parameters(layer)) return;
  if (ahead_ != layer) begin_gather(layer);
  const std::int32_t gather = gather_;
  ahead_.reset();
  if (next && looks_ahead_ && parameters_.has_parameters(*next)) begin_gather(*next);
  recorder_.await(gather);
}

void PassMoves::open(std::size_t layer) {
  if (!parameters_.common().layout().shares().reduces_layers() || !parameters_.has_parameters(layer)) return;
  if (reduction_ >= 0) recorder_.await(reduction_);
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).open(recorder_);
}

void PassMoves::leave_vectors(std::size_t layer) {
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).leave_vectors(recorder_);
}

void PassMoves::take_vectors(std::size_t layer) {
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).take_vectors(recorder_);
}

void PassMoves::reduce(std::size_t layer) {
  if (!parameters_.common().layout().shares().reduces_layers() || !parameters_.has_parameters(layer)) return;
  recorder_.go_aside(DeviceStream::kReduce);
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).reduce(recorder_);
  recorder_.open_piece();
  for (const ParameterBlock& block : parameters_.blocks()) block.moved_layer(moved_, layer).add_share(recorder_);
  reduction_ = recorder_.come_back();
}

}}  // namespace plumb::executor
