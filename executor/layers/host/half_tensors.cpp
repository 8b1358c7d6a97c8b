#include "executor/layers/host/half_tensors.h"

#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {

Tensor narrowed(TensorPool& pool, const Tensor& wide, HalfFormat format) {
  Tensor result = pool.take_bytes_within(2 * wide.elements(), wide.block_bytes() / 2);
  narrow(result.halves(), wide.data(), wide.elements(), format);
  return result;
}

Tensor widened(TensorPool& pool, const Tensor& narrow, std::int64_t elements, HalfFormat format) {
  Tensor result = pool.take(elements);
  widen(result.data(), narrow.halves(), elements, format);
  return result;
}

void round_to_half(Tensor& wide, HalfFormat format) {
  for (float& value : wide.values())
    value = format == HalfFormat::kBf16 ? widen_bf16(narrow_to_bf16(value)) : widen_fp16(narrow_to_fp16(value));
}

namespace {

/// Returns a saved tensor in fp32, as large as it was before it was narrowed.
Tensor widened_again(TensorPool& pool, const Tensor& narrow, HalfFormat format) {
  Tensor result =
      pool.take_bytes_within(2 * static_cast<std::int64_t>(narrow.bytes().size()), 2 * narrow.block_bytes());
  widen(result.data(), narrow.halves(), result.elements(), format);
  return result;
}

}  // namespace

void narrow_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format) {
  if (saved.is_narrow) return;
  for (Tensor* tensor : saved.narrowable()) *tensor = narrowed(pool, *tensor, format);
  saved.is_narrow = true;
}

void widen_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format) {
  if (!saved.is_narrow) return;
  for (Tensor* tensor : saved.narrowable()) *tensor = widened_again(pool, *tensor, format);
  saved.is_narrow = false;
}

}}  // namespace plumb::executor
