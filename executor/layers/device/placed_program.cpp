#include "executor/layers/device/placed_program.h"

#include <utility>

namespace plumb { inline namespace executor {

PlacedProgram::PlacedProgram(const Layer& layer, const LayerWork& own, std::int64_t element_bytes,
                             const DeviceSeat& seat)
    : layer_(layer),
      share_(divide_layer(layer, seat.tensor.ranks, seat.experts.tensor.ranks)),
      own_(own),
      seat_(seat),
      element_bytes_(element_bytes),
      plain_(layer_program(layer, whole_work(own, seat), Machine::kDevice)),
      fused_{fused_program(layer, whole_work(own, seat), false), fused_program(layer, whole_work(own, seat), true)},
      first_in_storage_(first_in_storage(plain_)),
      first_elements_(first_elements(plain_.parameters)) {
  LayerPlaces places = layer_places(plain_, element_bytes);
  places_ = std::move(places.places);
  bytes_ = places.bytes;
  for (const LayerStep& step : plain_.steps) {
    const Exchange* exchange = step.exchange();
    if (exchange == nullptr || exchange->kind != ExchangeKind::kReduceScatter) continue;
    const int block = step.writes.front();
    if (is_stored_at(block, step.reads.front()))
      places_[static_cast<std::size_t>(block)].offset += seat.tensor.rank * tensor(block).bytes(element_bytes);
  }
}

}}  // namespace plumb::executor
