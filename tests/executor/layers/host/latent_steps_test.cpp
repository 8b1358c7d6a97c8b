// A block with latent attention against a reference that computes token by token, in double. Its MLP has no weights:
// y = x + attention(norm(x)).

#include "executor/layers/host/latent_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/executor/layers/host/written_down.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kSequences = 2, kSequence = 5;

/// Turns `count` channels from `x` on by the angles of a position.
void turn(double* x, std::int64_t count, std::int64_t position, double theta) {
  for (std::int64_t i = 0; i < count / 2; ++i) {
    const double angle = double(position) * std::pow(theta, -2.0 * double(i) / double(count));
    const double a = x[i], b = x[i + count / 2];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + count / 2] = a * std::sin(angle) + b * std::cos(angle);
  }
}

struct Token {
  Doubles queries, keys, values;  // of all heads
};

Token token_of(const TransformerLayer& layer, const Weights& of, const Doubles& x, std::int64_t position) {
  const std::int64_t d = layer.head_size, r = layer.rotary_size, w = layer.value_size, own = d - r;
  const Doubles input = normed(x, of.at("norm1.gain"), layer.norm_epsilon);
  Doubles before = input;
  if (layer.query_rank > 0)
    before = normed(multiplied(of.at("query_down.weight"), input), of.at("query_norm.gain"), layer.norm_epsilon);
  Token token{.queries = multiplied(of.at("query_up.weight"), before), .keys = {}, .values = {}};
  Doubles compressed = multiplied(of.at("kv_down.weight"), input);
  Doubles shared(compressed.end() - r, compressed.end());
  compressed.resize(static_cast<std::size_t>(layer.kv_rank));
  turn(shared.data(), r, position, layer.rope_theta);
  const Doubles both = multiplied(of.at("kv_up.weight"), normed(compressed, of.at("kv_norm.gain"), layer.norm_epsilon));
  for (std::int64_t head = 0; head < layer.heads; ++head) {
    turn(token.queries.data() + head * d + own, r, position, layer.rope_theta);
    const auto first = both.begin() + head * (own + w);
    token.keys.insert(token.keys.end(), first, first + own);
    token.keys.insert(token.keys.end(), shared.begin(), shared.end());
    token.values.insert(token.values.end(), first + own, first + own + w);
  }
  return token;
}

Doubles naive_block(const TransformerLayer& layer, const Weights& of, const Doubles& x) {
  const std::int64_t d = layer.head_size, w = layer.value_size, h = layer.hidden;
  Doubles y;
  for (std::int64_t sequence = 0; sequence < kSequences; ++sequence) {
    std::vector<Token> tokens;
    for (std::int64_t i = 0; i < kSequence; ++i) {
      const auto first = x.begin() + (sequence * kSequence + i) * h;
      tokens.push_back(token_of(layer, of, Doubles(first, first + h), i));
      Doubles output;
      for (std::int64_t head = 0; head < layer.heads; ++head) {
        Doubles sums(static_cast<std::size_t>(w));
        double total = 0;
        for (const Token& key : tokens) {
          const auto query = tokens.back().queries.begin() + head * d;
          const double score =
              std::inner_product(query, query + d, key.keys.begin() + head * d, 0.0) / std::sqrt(double(d));
          total += std::exp(score);
          for (std::int64_t c = 0; c < w; ++c)
            sums[static_cast<std::size_t>(c)] += std::exp(score) * key.values[static_cast<std::size_t>(head * w + c)];
        }
        for (const double sum : sums) output.push_back(sum / total);
      }
      const Doubles branch = multiplied(of.at("attention_output.weight"), output);
      for (std::int64_t c = 0; c < h; ++c) y.push_back(first[c] + branch[static_cast<std::size_t>(c)]);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("latent attention and its gradients are those of one that is written down token by token") {
  for (const std::int64_t query_rank : {10, 0}) {
    CAPTURE(query_rank);
    TransformerLayer layer = latent_block();
    layer.experts = layer.experts_per_token = layer.expert_ffn = layer.shared_ffn = 0;
    layer.router = RouterKind::kSoftmax;
    layer.query_rank = query_rank;
    Weights weights;
    std::uint64_t stream = 0;
    for (const ParameterTensor& tensor : layer_parameters(layer)) {
      ++stream;
      if (tensor.name.starts_with("norm2") || tensor.name.starts_with("gate_up") || tensor.name.starts_with("down"))
        continue;
      weights[tensor.name] = numbers(element_count(tensor), stream, 0.4);
      if (tensor.is_vector())
        for (double& gain : weights[tensor.name]) gain += 1;
    }
    check_block(layer, {.microbatch = kSequences, .sequence = kSequence}, weights,
                [&](const Weights& of, const Doubles& x) { return naive_block(layer, of, x); });
  }
}

}  // namespace plumb::test
