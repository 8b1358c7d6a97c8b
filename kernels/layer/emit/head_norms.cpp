#include "kernels/layer/emit/head_norms.h"

#include <string>
#include <utility>

namespace plumb { inline namespace kernels {
HeadNorms::HeadNorms(ProgramBuilder& builder, const TransformerLayer& layer, std::int64_t query_columns) {
  if (layer.query_key_norms == QueryKeyNorms::kNone) return;
  const bool of_each_head = layer.query_key_norms == QueryKeyNorms::kEachHead;
  const int tensor_ranks = builder.work().tensor_parallel;
  divides_rows_ = !of_each_head && tensor_ranks > 1;
  const TransformerLayer share = builder.share_of(layer);
  const auto add = [&](const char* name, const char* norm, std::string_view unit, std::int64_t heads,
                       std::int64_t first_column, bool shared) {
    const std::int64_t columns = heads * layer.head_size;
    Part part{.name = name,
              .norm = builder.norm(norm, layer.norm, of_each_head ? layer.head_size : columns),
              .first_column = first_column,
              .columns = columns};
    part.norm.sums_gradients = of_each_head && tensor_ranks > 1;
    if (!of_each_head)
      for (const int parameter : {part.norm.gain, part.norm.bias}) {
        if (parameter < 0) continue;
        builder.parameter_at(parameter).split_dimension = 0;
        builder.parameter_at(parameter).pieces = {{unit, heads, layer.head_size, shared}};
      }
    parts_.push_back(std::move(part));
  };
  add("queries", "query_norm", "heads", share.heads, 0, false);
  add("keys", "key_norm", "kv heads", share.kv_heads, query_columns, true);
}

void HeadNorms::forward(ProgramBuilder& builder, int qkv) {
  for (Part& part : parts_) {
    const std::string name = part.name;
    part.before = builder.tensor(name + " before their norm", builder.tokens(), part.columns);
    builder.copy_columns(part.name, part.first_column, qkv, part.before);
    const int normed = builder.tensor("normed " + name, builder.tokens(), part.columns);
    builder.norm_forward(part.norm, part.before, normed).cheap = false;  // no result of it is kept
    for (const int statistic : part.norm.statistics) sum_rows(builder, part, statistic);
    builder.copy_columns(part.name, part.first_column, normed, qkv, true);
  }
}

void HeadNorms::input_grad(ProgramBuilder& builder, int qkv_gradient) const {
  for (const Part& part : parts_) {
    const std::string name = part.name;
    const int gradient = builder.tensor("gradient of normed " + name, builder.tokens(), part.columns);
    builder.copy_columns(part.name, part.first_column, qkv_gradient, gradient);
    for (const int statistic : part.norm.statistics) sum_rows(builder, part, statistic);
    const int before = builder.in_place_of("gradient of " + name + " before their norm", part.before);
    builder.norm_backward(part.norm, gradient, -1, part.before, before);
    builder.copy_columns(part.name, part.first_column, before, qkv_gradient, true);
  }
}

void HeadNorms::sum_rows(ProgramBuilder& builder, const Part& part, int sums) const {
  if (!divides_rows_) return;
  builder.exchange(part.norm.name + " sums of rows",
                   {.kind = ExchangeKind::kAllReduce,
                    .group = ExchangeGroup::kTensor,
                    .elements = builder.at(sums).elements(),
                    .type = StoredType::kSingle},
                   {sums}, {sums});
}

}}  // namespace plumb::kernels
