#include "executor/parameters/device/optimizer_places.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::int64_t kStateAlignment = 128;  // a warp's numbers are one line then

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kStateAlignment - 1) / kStateAlignment * kStateAlignment;
}

bool decays(const ParameterTensor& tensor) {
  return !tensor.is_vector();
}

std::int64_t bytes_of(const std::vector<StatePlace>& fields) {
  std::int64_t bytes = 0;
  for (const StatePlace& field : fields) bytes += aligned(field.count);
  return bytes;
}

}  // namespace

OptimizerPlaces::OptimizerPlaces(const ParameterPlaces& places, ElementRange own, const OptimizerPlacesOptions& options)
    : options_(options) {
  const std::vector<ParameterPiece> pieces = pieces_in(places, own);
  if (options_.is_on_host && options_.is_half) master_ = take(own.count * kSingleBytes);
  if (is_elementwise(options_.optimizer))
    add_ranges(places, pieces, own);
  else
    add_tensors(places, pieces);
  if (options_.is_half) state_bytes_ += own.count * kSingleBytes;
  if (!options_.is_on_host) return;
  if (has_master_on_host())
    for (UpdatePart& part : parts_)
      part.fields.push_back({master_.first + part.first * kSingleBytes, part.count * kSingleBytes});
  cut_parts();
  for (const UpdatePart& part : parts_) half_bytes_ = std::max(half_bytes_, bytes_of(part.fields));
}

StatePlace OptimizerPlaces::take(std::int64_t bytes) {
  return {std::exchange(block_bytes_, block_bytes_ + aligned(bytes)), bytes};
}

/// Optimizers that go by element have each field of all own elements in one place, and parts as long as they can be.
void OptimizerPlaces::add_ranges(const ParameterPlaces& places, const std::vector<ParameterPiece>& pieces,
                                 ElementRange own) {
  const auto tensor_of = [&](const ParameterPiece& piece) -> const ParameterTensor& {
    return places.parameters[piece.parameter].tensor;
  };
  std::vector<StatePlace> of_own;
  std::int64_t trained = own.count;
  const ParameterTensor* any = nullptr;
  for (const ParameterPiece& piece : pieces) {
    if (tensor_of(piece).balance_rate > 0)
      trained -= piece.count;
    else
      any = &tensor_of(piece);
  }
  if (any != nullptr)
    for (const OptimizerField& field : optimizer_fields(options_.optimizer, *any, trained)) {
      of_own.push_back(take(field.bytes));
      state_bytes_ += field.bytes;
    }
  const auto fields_in = [&](std::int64_t first, std::int64_t count) {
    std::vector<StatePlace> fields;
    for (const StatePlace& field : of_own) fields.push_back({field.first + first * kSingleBytes, count * kSingleBytes});
    return fields;
  };
  std::int64_t balanced = 0;  // elements so far that have no state
  for (const ParameterPiece& piece : pieces) {
    const double rate = tensor_of(piece).balance_rate;
    const bool own_decays = decays(tensor_of(piece));
    fields_.push_back(rate > 0 ? std::vector<StatePlace>{} : fields_in(piece.first_in_range - balanced, piece.count));
    if (parts_.empty() || parts_.back().decays != own_decays || parts_.back().balance_rate != rate)
      parts_.push_back(
          {.first = piece.first_in_range, .decays = own_decays, .balance_rate = rate, .matrices = {}, .fields = {}});
    parts_.back().count = piece.first_in_range + piece.count - parts_.back().first;
    if (rate > 0)
      balanced += piece.count;
    else
      parts_.back().fields = fields_in(parts_.back().first - balanced, parts_.back().count);
  }
}

void OptimizerPlaces::add_tensors(const ParameterPlaces& places, const std::vector<ParameterPiece>& pieces) {
  const bool is_factored = std::holds_alternative<Adafactor>(options_.optimizer);
  for (const ParameterPiece& piece : pieces) {
    const ParameterTensor& tensor = places.parameters[piece.parameter].tensor;
    assert(piece.count == element_count(tensor));
    UpdatePart part{.first = piece.first_in_range,
                    .count = piece.count,
                    .decays = decays(tensor),
                    .balance_rate = tensor.balance_rate,
                    .matrices = matrices_of(tensor),
                    .fields = {}};
    for (const OptimizerField& field : optimizer_fields(options_.optimizer, tensor, piece.count)) {
      part.fields.push_back(take(field.bytes));
      state_bytes_ += field.bytes;
    }
    fields_.push_back(part.fields);
    if (is_factored) squares_bytes_ = std::max(squares_bytes_, aligned(factor_square_bytes(part.matrices.matrices)));
    parts_.push_back(std::move(part));
  }
}

/// Cuts parts so that each fits half of the window. 8-bit AdamW is cut between its blocks, Adafactor and the few elements
/// of a bias of picks nowhere.
void OptimizerPlaces::cut_parts() {
  if (std::holds_alternative<Adafactor>(options_.optimizer)) return;
  const bool has_blocks = std::holds_alternative<AdamW8Bit>(options_.optimizer);
  const std::int64_t step = has_blocks ? kQuantisationBlock : kStateAlignment / kSingleBytes;  // elements
  const auto bytes_of_step = [&](std::size_t field) {
    if (!has_blocks || field >= 4) return step * kSingleBytes;
    return field % 2 == 0 ? step : kSingleBytes;  // codes, and their scale
  };
  std::vector<UpdatePart> cut;
  for (const UpdatePart& part : parts_) {
    if (part.balance_rate > 0) {
      cut.push_back(part);
      continue;
    }
    std::int64_t each = 0;
    for (std::size_t field = 0; field < part.fields.size(); ++field) each += aligned(bytes_of_step(field));
    const std::int64_t steps = std::max<std::int64_t>(1, options_.window_bytes / 2 / std::max<std::int64_t>(1, each));
    for (std::int64_t first = 0; first < part.count; first += steps * step) {
      UpdatePart& piece = cut.emplace_back(part);
      piece.first += first;
      piece.count = std::min(steps * step, part.count - first);
      for (std::size_t field = 0; field < part.fields.size(); ++field) {
        const std::int64_t begin = first / step * bytes_of_step(field);
        piece.fields[field] = {part.fields[field].first + begin,
                               std::min(steps * bytes_of_step(field), part.fields[field].count - begin)};
      }
    }
  }
  parts_ = std::move(cut);
}

std::vector<StatePlace> OptimizerPlaces::places_in_window(const UpdatePart& part) {
  std::vector<StatePlace> places;
  std::int64_t first = 0;
  for (const StatePlace& field : part.fields)
    places.push_back({std::exchange(first, first + aligned(field.count)), field.count});
  return places;
}

}}  // namespace plumb::executor
