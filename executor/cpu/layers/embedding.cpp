// Token and position embedding on the CPU. Symbols as in kernels/layer.h. A tensor rank has V/t rows of the token
// table and looks up the tokens that lie in them. The first tensor rank adds the positions, whose table every rank has.

#include <algorithm>
#include <utility>

#include "executor/cpu/layers/layer_kinds.h"
#include "executor/cpu/layers/tensor_parallel.h"

namespace plumb { inline namespace executor {
namespace {

struct EmbeddingSaved : LayerSaved {
  Tensor tokens;           // [T] rows of this rank's table; negative if another rank has the row
  Tensor output_gradient;  // [own rows, h], between the input and the weight gradient

  std::vector<Tensor*> tensors() override { return {&tokens, &output_gradient}; }
  Tensor* kept_input() override { return nullptr; }
  std::vector<Tensor*> narrowable() override { return {&output_gradient}; }
};

class CpuEmbedding : public CpuLayer {
 public:
  CpuEmbedding(const EmbeddingLayer& layer, const LayerSeat& seat)
      : layer_(std::get<EmbeddingLayer>(divide_layer(layer, seat.tensor.ranks))),
        seat_(seat.tensor),
        is_shared_(seat.context.ranks > 1),
        tokens_at_(parameter_offset(layer_, "tokens.weight")),
        positions_at_(parameter_offset(layer_, "positions.weight")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<EmbeddingSaved>(); }

  Tensor forward(const LayerCall& call, Tensor, LayerSaved& kept) const override {
    auto& saved = static_cast<EmbeddingSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t tokens = tokens_of(context.work);
    saved.tokens = context.pool->take(tokens);
    const std::span<std::int32_t> numbers(saved.tokens.tokens(), static_cast<std::size_t>(tokens));
    fill_inputs(numbers, context.text, call.place);
    if (seat_.ranks > 1)
      for (std::int32_t& number : numbers) number = own_row(number);
    Tensor output = context.pool->take(tokens * layer_.hidden);
    const OwnPositions own = seat_.rank == 0 ? own_positions(call) : OwnPositions{};
    context.kernels.embedding_forward(output.data(), saved.tokens.tokens(), call.weights + tokens_at_, own.rows, layer_,
                                      context.work);
    output = sum_rows(context, std::move(output), layer_.hidden);
    if (layer_.dropout > 0) drop_own_rows(call, 0, output.data(), output.data(), layer_.hidden, layer_.dropout);
    return output;
  }

  Tensor input_grad(const LayerCall&, Tensor output_gradient, LayerSaved& kept) const override {
    static_cast<EmbeddingSaved&>(kept).output_gradient = std::move(output_gradient);
    return {};
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<EmbeddingSaved&>(kept);
    const CpuContext& context = call.context;
    if (layer_.dropout > 0)
      drop_own_rows(call, 0, saved.output_gradient.data(), saved.output_gradient.data(), layer_.hidden, layer_.dropout);
    const AllRows gradient = all_rows(context, saved.output_gradient, layer_.hidden);
    if (!is_shared_ || positions_at_ < 0) {
      context.kernels.embedding_backward(call.gradients + tokens_at_, positions_from(call.gradients, context),
                                         gradient.rows, saved.tokens.tokens(), layer_, context.work);
      return;
    }
    Tensor positions = context.pool->take_zeros(context.work.sequence * layer_.hidden);
    context.kernels.embedding_backward(call.gradients + tokens_at_, positions.data(), gradient.rows,
                                       saved.tokens.tokens(), layer_, context.work);
    for_each_shared_run(call.place, [&](std::int64_t own, std::int64_t whole, std::int64_t count) {
      float* sums = call.gradients + positions_at_ + whole;
      for (std::int64_t i = 0; i < count; ++i) sums[i] += positions.data()[own + i];
    });
  }

  ElementRange tied_table(ModelEnd end) const override {
    if (end != ModelEnd::kEmbedding) return {};
    return {tokens_at_, layer_.vocab * layer_.hidden};
  }

 private:
  std::int32_t own_row(std::int32_t token) const {
    const std::int64_t row = token - seat_.rank * layer_.vocab;
    return row >= 0 && row < layer_.vocab ? static_cast<std::int32_t>(row) : -1;
  }

  /// Calls visit(element of the own tokens' rows, element of the position table, count).
  template <class Visit>
  void for_each_shared_run(const BatchPlace& place, Visit visit) const {
    const std::int64_t h = layer_.hidden;
    visit(0, place.slice.first * h, place.slice.count * h);
    visit(place.slice.count * h, place.second_slice.first * h, place.second_slice.count * h);
  }

  /// Returns the position table's rows of the tokens on this rank; null without positions.
  struct OwnPositions {
    Tensor copied;  // the rows of a context rank, copied together
    const float* rows = nullptr;
  };
  OwnPositions own_positions(const LayerCall& call) const {
    const CpuContext& context = call.context;
    if (!is_shared_ || positions_at_ < 0) return {.rows = positions_from(call.weights, context)};
    OwnPositions own{.copied = context.pool->take(context.work.sequence * layer_.hidden)};
    for_each_shared_run(call.place, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      std::copy_n(call.weights + positions_at_ + from, count, own.copied.data() + to);
    });
    own.rows = own.copied.data();
    return own;
  }

  /// Returns the row of the position table with which a slice begins; null without positions.
  template <class T>
  T* positions_from(T* block, const CpuContext& context) const {
    return positions_at_ < 0 ? nullptr : block + positions_at_ + context.first_token * layer_.hidden;
  }

  EmbeddingLayer layer_;  // this rank's share
  TensorSeat seat_;
  bool is_shared_;  // true if other context ranks have some of the tokens
  std::int64_t tokens_at_, positions_at_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_embedding(const EmbeddingLayer& layer, const LayerSeat& seat) {
  return std::make_unique<CpuEmbedding>(layer, seat);
}

}}  // namespace plumb::executor
