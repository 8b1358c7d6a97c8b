#pragma once
// The norms of queries and of keys behind their projection and before RoPE. A norm of each head (Qwen3, Gemma 3) works
// on rows of d channels, and one of all heads (OLMo 2) on a rank's whole queries or keys. Heads are copied out of the rows
// that have queries, keys and values, and back, so that the norms are those of any other rows:
//
//   "queries"     copy          "qkv" -> "queries before their norm"    kept for the backward
//   "query_norm"  kNormForward  {T a, d, kind}                          "normed queries"
//   "queries"     copy          "normed queries" -> "qkv"               in its columns
//
// Tensor ranks have heads of their own, so that the gradients of one gain for all heads are summed over them. A norm of
// all heads has a gain for each channel, of which a rank has its heads' share, and its sums of squares are summed.

#include <cstdint>
#include <vector>

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

class HeadNorms {
 public:
  /// Declares the parameters; none where the layer has no such norms. query_columns: columns of a rank's queries, with
  /// their gates.
  HeadNorms(ProgramBuilder& builder, const TransformerLayer& layer, std::int64_t query_columns);

  /// Emits the forward, in place. qkv: [T, w]
  void forward(ProgramBuilder& builder, int qkv);

  /// Emits the gradients of inputs, in place, and of parameters. qkv_gradient: [T, w]
  void input_grad(ProgramBuilder& builder, int qkv_gradient) const;

 private:
  /// The queries, or the keys.
  struct Part {
    const char* name = "";
    Norm norm;
    std::int64_t first_column = 0;
    std::int64_t columns = 0;
    int before = -1;  ///< tensor [T, columns], from the forward on
  };

  /// Sums over the tensor group what ranks know of whole rows, where a row's channels are divided.
  void sum_rows(ProgramBuilder& builder, const Part& part, int sums) const;

  bool divides_rows_ = false;
  std::vector<Part> parts_;
};

}}  // namespace plumb::kernels
