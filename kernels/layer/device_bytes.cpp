#include "kernels/layer/device_bytes.h"

#include <algorithm>
#include <cassert>

#include "kernels/layer/expert_rows.h"
#include "kernels/layer/kind_parts.h"
#include "kernels/layer/transformer_share.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kWord = 4;

/// Adds the bytes of one more tensor to `total`.
void put(std::int64_t& total, std::int64_t bytes) {
  total += aligned_bytes(bytes);
}

/// Adds the statistics that a norm keeps of each row.
void put_norm(DeviceBytes& bytes, NormKind norm, std::int64_t rows) {
  for (std::int64_t i = 0; i < statistics_per_row(norm); ++i) put(bytes.early, rows * kWord);
}

/// Rows that the experts of a rank have room for, and whether they are spread over the ranks of an expert group.
struct ExpertRoom {
  std::int64_t rows;
  bool is_spread;
};
ExpertRoom expert_room(const TransformerLayer& layer, const LayerWork& work) {
  if (work.experts.parallel == 1) return {.rows = tokens_in(work) * layer.experts_per_token, .is_spread = false};
  const RoutedTokens tokens{.sequences = work.microbatch, .tokens = work.sequence, .sequence = work.sequence};
  return {.rows = work.experts.parallel * most_rows_to_expert_rank(layer, tokens, work.experts.parallel),
          .is_spread = true};
}

/// Adds the buffers of the experts' rows; `backward` counts the tensors that are held until the experts are done.
void put_exchange(DeviceBytes& bytes, std::int64_t& backward, const TransformerLayer& layer, const LayerWork& work,
                  std::int64_t row_bytes) {
  const ExpertRoom room = expert_room(layer, work);
  put(bytes.forward_workspace, room.rows * row_bytes);
  put(backward, room.rows * row_bytes);
  if (!room.is_spread) return;
  put(bytes.early, room.rows * kWord);
  put(bytes.late, (layer.experts / work.experts.parallel + 1) * kWord);
  put(bytes.forward_workspace, 2 * layer.experts * kWord);
  put(bytes.forward_workspace, room.rows * row_bytes);
  put(backward, room.rows * row_bytes);
  for (int words = 0; words < 2; ++words) put(backward, room.rows * kWord);
}

void put_experts(DeviceBytes& bytes, const TransformerLayer& layer, const LayerWork& work, std::int64_t element) {
  const std::int64_t tokens = tokens_in(work), picks = tokens * layer.experts_per_token;
  const std::int64_t lists = work.microbatch * layer.experts, rows = expert_room(layer, work).rows;
  const std::int64_t row_bytes = layer.hidden * element, matrices = up_products(layer);
  const std::int64_t ffn = share(layer.expert_ffn, work.experts.tensor);
  const std::int64_t shared = share(layer.shared_ffn, work.tensor_parallel);
  put(bytes.backward_workspace, picks * kWord);
  put(bytes.backward_workspace, lists * kWord);
  std::int64_t of_rows = bytes.backward_workspace, of_tokens = bytes.backward_workspace;
  put_exchange(bytes, of_rows, layer, work, row_bytes);
  put(of_rows, rows * ffn * element);
  put(of_tokens, tokens * row_bytes);
  put(of_tokens, tokens * shared * element);
  bytes.backward_workspace = std::max(of_rows, of_tokens);
  if (layer.shared_ffn > 0) put(bytes.forward_workspace, tokens * row_bytes);

  for (const std::int64_t words : {picks, picks, picks, lists}) put(bytes.early, words * kWord);
  put(bytes.late, tokens * layer.experts * kWord);
  put(bytes.late, (layer.experts + 1) * kWord);
  for (int ends = 0; ends < 2; ++ends) put(bytes.late, rows * row_bytes);  // input, and the output's gradient
  put(bytes.late, rows * matrices * ffn * element);
  put(bytes.cheap, rows * ffn * element);
  if (layer.shared_ffn == 0) return;
  put(bytes.late, tokens * matrices * shared * element);
  put(bytes.cheap, tokens * shared * element);
}

DeviceBytes bytes_of(const TransformerLayer& layer, const LayerWork& work, std::int64_t element) {
  const TransformerShare part = share_of(layer, work.tensor_parallel);
  const std::int64_t tokens = tokens_in(work), row = tokens * element, h = layer.hidden;
  const std::int64_t own = residual_tokens_of(work) * h * element, statistics = tokens * part.heads * kWord;
  DeviceBytes bytes;
  for (int norm = 0; norm < 2; ++norm) {
    put_norm(bytes, layer.norm, residual_tokens_of(work));
    put(bytes.cheap, own);
  }
  put(bytes.early, own);  // the input
  put(bytes.early, statistics);
  put(bytes.late, row * part.qkv_width);
  put(bytes.late, row * part.query_width);
  put(bytes.late, own);  // the output's gradient
  put(bytes.forward_workspace, row * h);
  put(bytes.backward_workspace, row * h);
  if (!layer.parallel_residual) {
    put(bytes.late, own);
  } else {
    put(bytes.forward_workspace, own);
    put(bytes.backward_workspace, own);
  }
  if (layer.dropout > 0) put(bytes.backward_workspace, own);
  if (work.sequence_parallel) put(bytes.backward_workspace, 2 * h * kWord);
  if (work.sequence_parallel && layer.experts > 0) put(bytes.backward_workspace, row * h);
  std::int64_t of_attention = bytes.backward_workspace;
  if (layer.experts > 0) {
    put_experts(bytes, layer, work, element);
  } else {
    put(bytes.late, row * part.up_width);
    put(bytes.cheap, row * part.ffn);
    put(bytes.backward_workspace, row * part.ffn);
  }
  put(of_attention, row * part.query_width);
  put(of_attention, row * part.qkv_width);
  put(of_attention, statistics);
  if (layer.kv_heads < work.tensor_parallel)  // neighbouring ranks add up the gradients of the kv heads that they share
    put(of_attention, layer.kv_heads * row * (part.qkv_width - part.query_width) + kWord);
  bytes.backward_workspace = std::max(bytes.backward_workspace, of_attention);
  return bytes;
}

DeviceBytes bytes_of(const EmbeddingLayer& layer, const LayerWork& work, std::int64_t element) {
  DeviceBytes bytes;
  put(bytes.late, residual_tokens_of(work) * layer.hidden * element);
  if (!work.sequence_parallel) return bytes;
  for (std::int64_t* total : {&bytes.forward_workspace, &bytes.backward_workspace})
    put(*total, tokens_in(work) * layer.hidden * element);
  return bytes;
}

DeviceBytes bytes_of(const HeadLayer& layer, const LayerWork& work, std::int64_t element) {
  const std::int64_t tokens = tokens_in(work), own = residual_tokens_of(work), h = layer.hidden;
  DeviceBytes bytes;
  put_norm(bytes, layer.norm, own);
  put(bytes.early, own * h * element);
  put(bytes.cheap, own * h * element);
  put(bytes.late, tokens * share(layer.vocab, work.tensor_parallel) * element);
  if (work.tensor_parallel > 1) put(bytes.forward_workspace, 3 * work.tensor_parallel * tokens * kWord);
  put(bytes.backward_workspace, tokens * h * element);
  if (!work.sequence_parallel) return bytes;
  put(bytes.forward_workspace, tokens * h * element);
  put(bytes.backward_workspace, 2 * h * kWord);
  return bytes;
}

}  // namespace

SequenceBytes sequence_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block == nullptr) return {};
  const TransformerShare part = share_of(*block, work.tensor_parallel);
  const std::int64_t elements = tokens_in(work) * (part.qkv_width - part.query_width);
  SequenceBytes bytes;
  put(bytes.kept, elements * element_bytes);
  put(bytes.gradients, elements * kWord);
  return bytes;
}

bool has_device_bytes(const Layer& layer) {
  return std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer) ||
         (std::holds_alternative<TransformerLayer>(layer) && has_kernels(layer));
}

DeviceBytes device_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes) {
  assert(has_device_bytes(layer));
  if (const auto* block = std::get_if<TransformerLayer>(&layer)) return bytes_of(*block, work, element_bytes);
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return bytes_of(*head, work, element_bytes);
  return bytes_of(std::get<EmbeddingLayer>(layer), work, element_bytes);
}

}}  // namespace plumb::kernels
