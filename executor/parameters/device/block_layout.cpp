#include "executor/parameters/device/block_layout.h"

#include <algorithm>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {

BlockLayout::BlockLayout(const std::vector<Layer>& layers, const ParameterBlockOptions& options)
    : options_(options),
      layers_(layers),
      places_(parameter_places(divide_layers(layers, options.tensor.ranks, options.experts.tensor.ranks), options.part,
                               options.experts.ranks)),
      shares_(places_, options.shares),
      optimizer_places_(places_, shares_.own(), options.optimizer),
      vectors_(places_) {}

ElementRange BlockLayout::range_of(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer];
  return {first, places_.first_element[layer + 1] - first};
}

ElementRange BlockLayout::own_in(ElementRange range) const {
  const std::int64_t first = std::max(range.first, own().first);
  return {first, std::max<std::int64_t>(0, std::min(range.first + range.count, own().first + own().count) - first)};
}

bool BlockLayout::has_vector_block() const {
  return is_half() && vectors_.elements() > 0 && (shares_.zero() > 0 || optimizer_places_.has_master_on_host());
}

std::int64_t BlockLayout::stored_bytes() const {
  return (elements() * element_bytes() + 3) / 4 * 4;
}

std::int64_t BlockLayout::version_bytes() const {
  const std::int64_t stored = stored_bytes();
  return is_half() ? aligned_bytes(stored) + vectors_.elements() * kSingleBytes : stored;
}

std::int64_t BlockLayout::held_bytes() const {
  std::int64_t state = 0;  // with the room between its fields
  if (!optimizer_places_.is_on_host())
    state = optimizer_places_.block_bytes() + (is_half() ? own().count * kSingleBytes : 0);
  return weight_bytes() + gradient_bytes() + state + (has_vector_block() ? vectors_.elements() * kSingleBytes : 0) +
         (shares_.reduces_layers() ? vectors_.elements() * kSingleBytes : 0);
}

std::int64_t BlockLayout::whole_gradient_bytes() const {
  return shares_.zero() < 2 || shares_.reduces_layers() ? 0 : elements() * kSingleBytes;
}

}}  // namespace plumb::executor
