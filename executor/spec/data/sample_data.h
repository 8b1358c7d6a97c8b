#pragma once
// Training data of models that do not read text: images with labels, or vectors of numbers with targets. The sample of
// the set that is used depends on the seed, the step and the sample's number in the global batch, as in token_batch.h,
// and so on nothing that a layout decides.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/spec/data/token_batch.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// Images of bytes with their labels. Without images the data are made up (SampleData).
struct ImageSet {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::vector<std::uint8_t> pixels;         ///< [images, channels, height, width]
  std::vector<std::uint8_t> labels;         ///< [images]
  std::array<float, 3> mean{};              ///< [channel] subtracted from pixels, which lie between 0 and 1
  std::array<float, 3> deviation{1, 1, 1};  ///< [channel] divisor of the result

  friend bool operator==(const ImageSet&, const ImageSet&) = default;
};

/// The training data of a model. Without images, `samples` different samples are drawn from the seed. The input of a
/// class is the class's own pattern plus noise of twice its size, each number normal. Targets are fixed sums of three
/// numbers of the input.
struct SampleData {
  InputLayer shape;          ///< shape of an input; images of another height and width are resized (bilinear)
  std::int64_t outputs = 0;  ///< classes, or numbers of a target
  std::int64_t samples = 512;
  ImageSet images;

  friend bool operator==(const SampleData&, const SampleData&) = default;
};

/// Fills inputs: [count, height, width, channels] of the data's shape.
void fill_samples(std::span<float> inputs, const SampleData& data, const BatchPlace& place);

/// Fills labels: [count], below data.outputs.
void fill_labels(std::span<std::int32_t> labels, const SampleData& data, const BatchPlace& place);

/// Fills targets: [count, data.outputs]. For made-up data only.
void fill_sample_targets(std::span<float> targets, const SampleData& data, const BatchPlace& place);

/// Returns the images of CIFAR-10's binary form (Krizhevsky 2009): records of a label and 3 x 32 x 32 bytes. With
/// `normalise` the mean and deviation are those of the file's pixels. Throws InputError, with `file`, if the bytes are
/// not a whole number of records or a label is above 9.
ImageSet parse_cifar10(std::string_view bytes, const std::string& file, bool normalise);

}}  // namespace plumb::executor
