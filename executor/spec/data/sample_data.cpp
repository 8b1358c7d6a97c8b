#include "executor/spec/data/sample_data.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "kernels/counter_random.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::uint64_t kPatternStream = 4;  // random stream of the patterns of made-up data
constexpr std::uint64_t kNoiseStream = 5;    // random stream of their noise
constexpr float kPatternSize = 0.5F;

std::int64_t set_size(const SampleData& data) {
  return data.images.labels.empty() ? data.samples : static_cast<std::int64_t>(data.images.labels.size());
}

/// Returns the number, in the set, of a sample of the global batch.
std::uint64_t drawn(const SampleData& data, const BatchPlace& place, std::int64_t sample) {
  return uniform_index(
      static_cast<std::uint64_t>(set_size(data)),
      {kDataStream, place.seed, static_cast<std::uint64_t>(place.step), static_cast<std::uint64_t>(sample)});
}

std::uint64_t label_of(const SampleData& data, std::uint64_t sample) {
  if (!data.images.labels.empty()) return data.images.labels[sample];
  return sample % static_cast<std::uint64_t>(data.outputs);
}

float noise(const BatchPlace& place, std::uint64_t sample, std::uint64_t element) {
  return standard_normal({kNoiseStream, place.seed, sample, element});
}

/// Returns element `element` of a made-up input.
float made_up(const SampleData& data, const BatchPlace& place, std::uint64_t sample, std::uint64_t element) {
  const float pattern = standard_normal({kPatternStream, place.seed, label_of(data, sample), element});
  return kPatternSize * pattern + noise(place, sample, element);
}

/// Position of a row or column of the resized image between two of the original; the pixels' centres coincide.
struct Between {
  std::int64_t low, high;
  float share_of_high;
};
Between source_of(std::int64_t index, std::int64_t size, std::int64_t original) {
  const float at = (static_cast<float>(index) + 0.5F) * static_cast<float>(original) / static_cast<float>(size) - 0.5F;
  const float inside = std::clamp(at, 0.0F, static_cast<float>(original - 1));
  const auto low = static_cast<std::int64_t>(inside);
  return {low, std::min(low + 1, original - 1), inside - static_cast<float>(low)};
}

/// Fills image: [height, width, channels] of the data's shape.
void fill_image(std::span<float> image, const SampleData& data, std::uint64_t sample) {
  const ImageSet& set = data.images;
  const std::uint8_t* pixels =
      set.pixels.data() + sample * static_cast<std::uint64_t>(set.channels * set.height * set.width);
  std::size_t i = 0;
  for (std::int64_t row = 0; row < data.shape.height; ++row) {
    const Between y = source_of(row, data.shape.height, set.height);
    for (std::int64_t column = 0; column < data.shape.width; ++column) {
      const Between x = source_of(column, data.shape.width, set.width);
      for (std::int64_t channel = 0; channel < set.channels; ++channel) {
        const auto pixel = [&](std::int64_t from_row, std::int64_t from_column) {
          return static_cast<float>(pixels[(channel * set.height + from_row) * set.width + from_column]) / 255.0F;
        };
        const float upper = std::lerp(pixel(y.low, x.low), pixel(y.low, x.high), x.share_of_high);
        const float lower = std::lerp(pixel(y.high, x.low), pixel(y.high, x.high), x.share_of_high);
        const auto c = static_cast<std::size_t>(channel);
        image[i++] = (std::lerp(upper, lower, y.share_of_high) - set.mean[c]) / set.deviation[c];
      }
    }
  }
}

}  // namespace

void fill_samples(std::span<float> inputs, const SampleData& data, const BatchPlace& place) {
  const auto elements = static_cast<std::size_t>(data.shape.height * data.shape.width * data.shape.channels);
  assert(inputs.size() == static_cast<std::size_t>(place.count) * elements);
  for (std::int64_t i = 0; i < place.count; ++i) {
    const std::uint64_t sample = drawn(data, place, place.first_sample + i);
    const std::span<float> input = inputs.subspan(static_cast<std::size_t>(i) * elements, elements);
    if (!data.images.labels.empty()) {
      fill_image(input, data, sample);
      continue;
    }
    for (std::size_t element = 0; element < elements; ++element) input[element] = made_up(data, place, sample, element);
  }
}

void fill_labels(std::span<std::int32_t> labels, const SampleData& data, const BatchPlace& place) {
  for (std::int64_t i = 0; i < place.count; ++i)
    labels[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(label_of(data, drawn(data, place, place.first_sample + i)));
}

void fill_sample_targets(std::span<float> targets, const SampleData& data, const BatchPlace& place) {
  const auto elements = static_cast<std::uint64_t>(data.shape.height * data.shape.width * data.shape.channels);
  std::size_t next = 0;
  for (std::int64_t i = 0; i < place.count; ++i) {
    const std::uint64_t sample = drawn(data, place, place.first_sample + i);
    for (std::uint64_t output = 0; output < static_cast<std::uint64_t>(data.outputs); ++output) {
      float sum = 0;
      for (const std::uint64_t term : {0, 1, 2})
        sum += made_up(data, place, sample, uniform_index(elements, {kPatternStream, place.seed, output, term}));
      targets[next++] = 0.5F * sum;
    }
  }
}

ImageSet parse_cifar10(std::string_view bytes, const std::string& file, bool normalise) {
  constexpr std::int64_t kSide = 32, kChannels = 3;
  constexpr std::size_t kPixels = kSide * kSide * kChannels, kRecord = kPixels + 1;
  constexpr std::uint8_t kClasses = 10;
  if (bytes.empty() || bytes.size() % kRecord != 0)
    throw InputError(fmt::format("{} has {} bytes, and CIFAR-10's binary form has records of {}: give data_batch_1.bin",
                                 file, bytes.size(), kRecord));
  ImageSet set{.height = kSide, .width = kSide, .channels = kChannels};
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    const auto label = static_cast<std::uint8_t>(bytes[at]);
    if (label >= kClasses)
      throw InputError(
          fmt::format("{}: the label of record {} is {}, and CIFAR-10 has {} classes: give its binary form", file,
                      at / kRecord, label, kClasses));
    set.labels.push_back(label);
    const std::string_view pixels = bytes.substr(at + 1, kPixels);
    set.pixels.insert(set.pixels.end(), pixels.begin(), pixels.end());
  }
  if (!normalise) return set;
  std::array<std::int64_t, 3> sums{}, squares{};  // sums of bytes, and so exact
  constexpr std::size_t kPlane = kSide * kSide;
  for (std::size_t i = 0; i < set.pixels.size(); ++i) {
    const std::int64_t value = set.pixels[i];
    sums[i / kPlane % kChannels] += value;
    squares[i / kPlane % kChannels] += value * value;
  }
  const auto count = static_cast<std::int64_t>(set.labels.size() * kPlane);
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double scale = 255.0 * static_cast<double>(count);
    const std::int64_t spread = count * squares[c] - sums[c] * sums[c];
    set.mean[c] = static_cast<float>(static_cast<double>(sums[c]) / scale);
    if (spread > 0) set.deviation[c] = static_cast<float>(std::sqrt(static_cast<double>(spread)) / scale);
  }
  return set;
}

}}  // namespace plumb::executor
