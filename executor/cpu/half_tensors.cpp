#include "executor/cpu/half_tensors.h"

#include "kernels/cpu/half.h"

namespace plumb {

Tensor narrowed(TensorPool& pool, const Tensor& wide, HalfFormat format) {
  Tensor result = pool.take_bytes(2 * wide.elements());
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

void narrow_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format) {
  if (saved.is_narrow) return;
  for (Tensor* tensor : saved.narrowable()) *tensor = narrowed(pool, *tensor, format);
  saved.is_narrow = true;
}

void widen_saved(LayerSaved& saved, TensorPool& pool, HalfFormat format) {
  if (!saved.is_narrow) return;
  for (Tensor* tensor : saved.narrowable())
    *tensor = widened(pool, *tensor, static_cast<std::int64_t>(tensor->bytes().size() / 2), format);
  saved.is_narrow = false;
}

}  // namespace plumb
