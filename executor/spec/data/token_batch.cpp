#include "executor/spec/data/token_batch.h"

#include <cassert>

#include "kernels/counter_random.h"

namespace plumb { inline namespace executor {
namespace {

void fill(std::span<std::int32_t> tokens, std::span<const std::uint8_t> text, const BatchPlace& place,
          std::size_t shift) {
  const auto sequence = static_cast<std::size_t>(place.sequence);
  const TokenRange first_wanted = place.slice.count > 0 ? place.slice : TokenRange{0, place.sequence};
  assert(text.size() > sequence && std::ssize(tokens) == place.count * (first_wanted.count + place.second_slice.count));
  std::size_t i = 0;
  for (std::int64_t sample = place.first_sample; sample < place.first_sample + place.count; ++sample) {
    const std::uint64_t first = uniform_index(
        text.size() - sequence,
        {kDataStream, place.seed, static_cast<std::uint64_t>(place.step), static_cast<std::uint64_t>(sample)});
    for (const TokenRange& wanted : {first_wanted, place.second_slice})
      for (std::int64_t t = wanted.first; t < wanted.first + wanted.count; ++t)
        tokens[i++] = text[first + static_cast<std::size_t>(t) + shift];
  }
}

}  // namespace

void fill_inputs(std::span<std::int32_t> inputs, std::span<const std::uint8_t> text, const BatchPlace& place) {
  fill(inputs, text, place, 0);
}

void fill_targets(std::span<std::int32_t> targets, std::span<const std::uint8_t> text, const BatchPlace& place) {
  fill(targets, text, place, 1);
}

}}  // namespace plumb::executor
