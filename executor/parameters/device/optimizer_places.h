#pragma once
// Places of an optimizer's state of a stage's own elements in one block of bytes, on the device or in the host's
// memory, and the parts in which a step updates it. From the host a part's state comes through a window on the device
// that all parts use in turn, in one of its halves while the other half is copied. The window bounds the bytes that a
// step needs on the device.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/kernels/device_update_kernels.h"
#include "executor/layers/parameter_places.h"
#include "kernels/optimizer.h"

namespace plumb { inline namespace executor {

/// Bytes of a window whose halves hide a copy's latency. An update of less than a half is one part.
inline constexpr std::int64_t kUpdateWindowBytes = std::int64_t{16} << 20;

struct OptimizerPlacesOptions {
  OptimizerSettings optimizer;
  bool is_half = false;  ///< weights are in 16 bits: fp32 master weights of own elements are state, too
  bool is_on_host = false;
  std::int64_t window_bytes = kUpdateWindowBytes;  ///< on the host: two parts, unless an update takes a tensor whole
};

/// A range of the block, in bytes.
struct StatePlace {
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const StatePlace&, const StatePlace&) = default;
};

/// Neighbours among the own elements that one update takes: weight decay spares all of them, or none, and they are a
/// bias of picks, or the optimizer trains them.
struct UpdatePart {
  std::int64_t first = 0;  ///< own element
  std::int64_t count = 0;
  bool decays = false;
  double balance_rate = 0;   ///< of a bias of picks (kernels/layer/parameter_tensor.h), which has no state
  MatrixStackSize matrices;  ///< for Adafactor; no rows: a vector
  /// [field] in the order of optimizer_fields() (executor/parameters/optimizer_state.h). On the host, and in 16
  /// bits, the master weights stand behind them.
  std::vector<StatePlace> fields;
};

class OptimizerPlaces {
 public:
  /// `own`: elements of the stage's block whose state is here. Optimizers that do not go by element need whole tensors.
  OptimizerPlaces(const ParameterPlaces& places, ElementRange own, const OptimizerPlacesOptions& options);

  const std::vector<UpdatePart>& parts() const { return parts_; }

  /// [field] of pieces_in(places, own)[piece].
  const std::vector<StatePlace>& fields(std::size_t piece) const { return fields_[piece]; }
  /// Place of the master weights of all own elements, on the host and in 16 bits; otherwise count 0.
  StatePlace master() const { return master_; }
  bool has_master_on_host() const { return master_.count > 0; }

  /// Bytes of the block, with room between fields.
  std::int64_t block_bytes() const { return block_bytes_; }
  /// Bytes of the state alone, master weights included wherever they are.
  std::int64_t state_bytes() const { return state_bytes_; }
  bool is_on_host() const { return options_.is_on_host; }

  /// Bytes that a step needs on the device while it runs: Adafactor's sums of squares, then the window.
  std::int64_t workspace_bytes() const {
    return squares_bytes_ + std::min<std::int64_t>(2, std::ssize(parts_)) * half_bytes_;
  }
  /// Offset of the half of the window that a part has.
  std::int64_t window_offset(std::size_t part) const {
    return squares_bytes_ + static_cast<std::int64_t>(part % 2) * half_bytes_;
  }
  /// Returns the places of a part's fields in its half of the window.
  static std::vector<StatePlace> places_in_window(const UpdatePart& part);

 private:
  void add_ranges(const ParameterPlaces& places, const std::vector<ParameterPiece>& pieces, ElementRange own);
  void add_tensors(const ParameterPlaces& places, const std::vector<ParameterPiece>& pieces);
  void cut_parts();
  StatePlace take(std::int64_t bytes);

  OptimizerPlacesOptions options_;
  std::vector<UpdatePart> parts_;
  std::vector<std::vector<StatePlace>> fields_;  // [piece][field]
  StatePlace master_;
  std::int64_t block_bytes_ = 0, state_bytes_ = 0, squares_bytes_ = 0, half_bytes_ = 0;
};

}}  // namespace plumb::executor
