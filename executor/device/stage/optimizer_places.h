#pragma once
// Where an optimizer's state of a stage's own elements lies in one block of bytes, on the device or in the host's
// memory, and in which parts a step updates it. From the host a part's state comes through a window on the device that
// all parts use in turn, in one of its halves while the other's is copied: it bounds what the step needs there.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/cpu/parameters/parameter_places.h"
#include "executor/device/kernels/device_update_kernels.h"
#include "kernels/optimizer.h"

namespace plumb { inline namespace executor {

/// Halves of a window of so many bytes hide a copy's latency; an update of less than a half is one part.
inline constexpr std::int64_t kUpdateWindowBytes = std::int64_t{16} << 20;

struct OptimizerPlacesOptions {
  OptimizerSettings optimizer;
  bool is_half = false;  ///< weights are stored in 16 bits: fp32 master weights of the own elements are state, too
  bool is_on_host = false;
  std::int64_t window_bytes = kUpdateWindowBytes;  ///< on the host: of two parts, unless an update takes a tensor whole
};

/// Bytes of the block.
struct StatePlace {
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const StatePlace&, const StatePlace&) = default;
};

/// What one update has: neighbours among the own elements that weight decay spares, or does not.
struct UpdatePart {
  std::int64_t first = 0;  ///< own element
  std::int64_t count = 0;
  bool decays = false;
  MatrixStackSize matrices;  ///< Adafactor's; no rows: a vector
  std::vector<StatePlace>
      fields;  ///< [field] as optimizer_fields() lists them (executor/cpu/parameters/optimizer_state.h); on
               ///< the host, and in 16 bits, the master weights behind them
};

class OptimizerPlaces {
 public:
  /// `own`: elements of the stage's block whose state is here. Optimizers that do not go by element need whole tensors.
  OptimizerPlaces(const ParameterPlaces& places, ElementRange own, const OptimizerPlacesOptions& options);

  const std::vector<UpdatePart>& parts() const { return parts_; }

  /// [field] of pieces_in(places, own)[piece].
  const std::vector<StatePlace>& fields(std::size_t piece) const { return fields_[piece]; }
  /// On the host, and in 16 bits: of the master weights of all own elements.
  StatePlace master() const { return master_; }
  bool has_master_on_host() const { return master_.count > 0; }

  /// Of the block, with room between fields.
  std::int64_t block_bytes() const { return block_bytes_; }
  /// Of the state alone, master weights included wherever they are.
  std::int64_t state_bytes() const { return state_bytes_; }
  bool is_on_host() const { return options_.is_on_host; }

  /// What a step needs on the device while it runs: Adafactor's sums of squares, then the window.
  std::int64_t workspace_bytes() const {
    return squares_bytes_ + std::min<std::int64_t>(2, std::ssize(parts_)) * half_bytes_;
  }
  /// Of the half that a part has.
  std::int64_t window_offset(std::size_t part) const {
    return squares_bytes_ + static_cast<std::int64_t>(part % 2) * half_bytes_;
  }
  /// Where a part's fields lie in the window, by themselves.
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
