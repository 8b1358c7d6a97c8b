#include "executor/parameters/device/block_values.h"

#include <algorithm>

#include "executor/parameters/initial_weights.h"
#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {
namespace {

/// Neighbouring elements of one parameter of the model that this rank owns.
struct OwnRun {
  std::size_t piece = 0;             // of the own elements
  std::int64_t first_in_piece = 0;   // element
  std::size_t layer = 0, index = 0;  // of the parameter in the model
  std::int64_t own = 0;              // first element in own blocks
  std::int64_t whole = 0;            // and in the parameter
  std::int64_t count = 0;
};

std::vector<ElementRun> runs_of(const BlockLayout& layout, const PlacedParameter& parameter) {
  return element_runs(layout.layers()[parameter.layer], parameter.index, layout.options().tensor,
                      layout.options().experts);
}

std::size_t model_layer(const BlockLayout& layout, const PlacedParameter& parameter) {
  return static_cast<std::size_t>(layout.options().first_layer) + parameter.layer;
}

/// Calls visit(OwnRun) for each of them.
template <class Visit>
void for_each_own_run(const BlockLayout& layout, Visit visit) {
  const std::vector<ParameterPiece> pieces = pieces_in(layout.places(), layout.own());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ParameterPiece& piece = pieces[i];
    const PlacedParameter& parameter = layout.places().parameters[piece.parameter];
    for (const ElementRun& run : runs_of(layout, parameter)) {
      const ElementRun own = within(run, piece.first_in_tensor, piece.count);
      if (own.count > 0)
        visit(OwnRun{.piece = i,
                     .first_in_piece = own.local - piece.first_in_tensor,
                     .layer = model_layer(layout, parameter),
                     .index = parameter.index,
                     .own = piece.first_in_range + (own.local - piece.first_in_tensor),
                     .whole = own.whole,
                     .count = own.count});
    }
  }
}

std::vector<float> initial_block(const BlockLayout& layout) {
  const ParameterBlockOptions& options = layout.options();
  std::vector<float> weights(static_cast<std::size_t>(layout.elements()));
  for (std::size_t i = 0; i < layout.layers().size(); ++i) {
    const ElementRange range = layout.range_of(i);
    fill_initial_weights(
        std::span(weights).subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count)),
        layout.layers()[i], options.first_layer + static_cast<int>(i), options.seed, options.tensor, options.part,
        options.experts);
  }
  return weights;
}

}  // namespace

std::vector<float> first_weights(const BlockLayout& layout) {
  std::vector<float> block = initial_block(layout);  // elements that pad a vocabulary stay as they began
  if (layout.options().resume == nullptr) return block;
  for (const PlacedParameter& parameter : layout.places().parameters)
    for (const ElementRun& run : runs_of(layout, parameter)) {
      const std::vector<float>& whole =
          layout.options().resume->parameters[model_layer(layout, parameter)][parameter.index].weights;
      std::copy_n(whole.data() + run.whole, run.count, block.begin() + parameter.first + run.local);
    }
  return block;
}

void copy_values(const BlockLayout& layout, ModelValues& model, std::span<const float> own, float factor) {
  if (!layout.shares().speaks()) return;
  std::vector<float> values(own.begin(), own.end());
  for (float& value : values) value *= factor;
  for (const ParameterPiece& piece : pieces_in(layout.places(), layout.own())) {
    const PlacedParameter& parameter = layout.places().parameters[piece.parameter];
    if (layout.options().tensor.rank > 0 && parameter.tensor.split_dimension < 0) continue;
    std::vector<float>& whole = model[model_layer(layout, parameter)][parameter.index];
    for (const ElementRun& run : runs_of(layout, parameter)) {
      const std::int64_t first = std::max(run.local, piece.first_in_tensor);
      const std::int64_t end = std::min(run.local + run.count, piece.first_in_tensor + piece.count);
      if (run.is_replica || first >= end) continue;
      std::copy_n(values.begin() + piece.first_in_range + (first - piece.first_in_tensor), end - first,
                  whole.begin() + run.whole + (first - run.local));
    }
  }
}

void restore_state(const BlockLayout& layout, std::span<std::byte> state) {
  const bool by_element = is_elementwise(layout.options().optimizer.optimizer);
  for_each_own_run(layout, [&](const OwnRun& run) {
    const SavedParameter& parameter = layout.options().resume->parameters[run.layer][run.index];
    const std::vector<StatePlace>& places = layout.optimizer().fields(run.piece);
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      const std::vector<std::byte>& saved = parameter.fields[field].bytes;
      std::byte* const to = state.data() + places[field].first;
      if (by_element)
        std::copy_n(saved.data() + kSingleBytes * run.whole, kSingleBytes * run.count,
                    to + kSingleBytes * run.first_in_piece);
      else
        std::ranges::copy(saved, to);
    }
  });
}

void save_values(const BlockLayout& layout, TrainingState& saved, std::span<const float> weights,
                 std::span<const std::byte> state) {
  const bool by_element = is_elementwise(layout.options().optimizer.optimizer);
  for_each_own_run(layout, [&](const OwnRun& run) {
    SavedParameter& parameter = saved.parameters[run.layer][run.index];
    std::copy_n(weights.begin() + run.own, run.count, parameter.weights.begin() + run.whole);
    const std::vector<StatePlace>& places = layout.optimizer().fields(run.piece);
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      std::vector<std::byte>& whole = parameter.fields[field].bytes;
      const std::byte* const from = state.data() + places[field].first;
      if (by_element)
        std::copy_n(from + kSingleBytes * run.first_in_piece, kSingleBytes * run.count,
                    whole.data() + kSingleBytes * run.whole);
      else
        std::copy_n(from, whole.size(), whole.begin());
    }
  });
}

}}  // namespace plumb::executor
