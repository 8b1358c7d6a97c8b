#include "executor/layers/device/embedding_step.h"

namespace plumb { inline namespace executor {
namespace {

/// Calls visit(element of the own tokens' rows, element of the position table, count) for each run of own tokens.
template <class Visit>
void for_each_run(const StepCall& of, Visit visit) {
  const ContextTokens& tokens = of.call.context.tokens;
  std::int64_t own = 0;
  for (const TokenRange& run : {tokens.first, tokens.second}) {
    if (run.count > 0) visit(own, run.first * of.columns(), run.count * of.columns());
    own += run.count * of.columns();
  }
}

/// True if the own tokens are the first of the position table.
bool are_first(const StepCall& of) {
  const ContextTokens& tokens = of.call.context.tokens;
  return tokens.first.first == 0 && tokens.second.count == 0;
}

EmbeddingSize size_of(const StepCall& of) {
  return {.tokens = of.rows(), .sequence = of.program.own().sequence, .columns = of.columns()};
}

/// Returns the positions of the own tokens; null if there is no table.
const std::byte* positions(const StepCall& of) {
  constexpr std::size_t kPositions = 1;
  const std::byte* const table = of.weight(kPositions);
  if (table == nullptr || are_first(of)) return table;
  std::byte* const own = of.written(kPositions);
  const std::int64_t element = of.program.element_bytes();
  for_each_run(of, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    of.kernels().copy(own + to * element, table + from * element, count * element);
  });
  return own;
}

void forward(const StepCall& of) {
  of.kernels().embedding_forward(of.written(0), of.call.tokens, of.weight(0),
                                 of.call.tensor.rank() > 0 ? nullptr : positions(of), size_of(of));
}

void backward(const StepCall& of) {
  constexpr std::size_t kPositions = 1;
  float* const sums = of.step.gradients.size() > kPositions ? of.gradient(kPositions) : nullptr;
  const auto add = [&](float* of_positions) {
    of.kernels().embedding_backward(of.gradient(0), of_positions, of.read(0), of.call.tokens, size_of(of));
  };
  if (sums == nullptr || are_first(of)) return add(sums);
  float* const own = of.floats_written(0);
  of.kernels().fill_zero(own, of.tensor_written(0).elements());
  add(own);
  for_each_run(of, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    of.kernels().add_gradients(sums + to, sums + to, own + from, count);
  });
}

}  // namespace

void enqueue_embedding(const StepCall& of) {
  if (of.is_forward()) return forward(of);
  backward(of);
}

}}  // namespace plumb::executor
