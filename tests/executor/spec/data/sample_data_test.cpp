#include "executor/spec/data/sample_data.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

std::vector<float> inputs_of(const SampleData& data, const BatchPlace& place) {
  std::vector<float> inputs(
      static_cast<std::size_t>(place.count * data.shape.height * data.shape.width * data.shape.channels));
  fill_samples(inputs, data, place);
  return inputs;
}

std::vector<std::int32_t> labels_of(const SampleData& data, const BatchPlace& place) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(place.count));
  fill_labels(labels, data, place);
  return labels;
}

/// Returns a record of CIFAR-10 whose pixels all have one value in each channel.
std::string record(char label, char red, char green, char blue) {
  return label + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

}  // namespace

TEST_CASE("a sample is the same in whichever micro-batch it comes") {
  const SampleData data{.shape = {.height = 3, .width = 2, .channels = 2}, .outputs = 4};
  const std::vector<float> all = inputs_of(data, {.seed = 3, .step = 2, .first_sample = 4, .count = 4});
  const std::vector<float> last = inputs_of(data, {.seed = 3, .step = 2, .first_sample = 7, .count = 1});
  CHECK(last == std::vector<float>(all.end() - 12, all.end()));
  CHECK(inputs_of(data, {.seed = 4, .step = 2, .first_sample = 7, .count = 1}) != last);
}

TEST_CASE("made-up samples of one class are closer to each other than to those of another") {
  const SampleData data{.shape = {.width = 400}, .outputs = 2, .samples = 50};
  const BatchPlace place{.seed = 1, .count = 40};
  const std::vector<float> x = inputs_of(data, place);
  const std::vector<std::int32_t> labels = labels_of(data, place);
  double same = 0, other = 0;
  int same_pairs = 0, other_pairs = 0;
  for (std::size_t a = 0; a < labels.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      double distance = 0;
      for (std::size_t i = 0; i < 400; ++i)
        distance += double(x[a * 400 + i] - x[b * 400 + i]) * double(x[a * 400 + i] - x[b * 400 + i]);
      if (distance == 0) continue;  // the same sample, drawn twice
      (labels[a] == labels[b] ? same : other) += distance;
      ++(labels[a] == labels[b] ? same_pairs : other_pairs);
    }
  CHECK(same / same_pairs < 0.95 * other / other_pairs);
}

TEST_CASE("targets follow from the input alone") {
  const SampleData data{.shape = {.width = 9}, .outputs = 3, .samples = 1};
  std::vector<float> first(3), second(3);
  fill_sample_targets(first, data, {.step = 0, .count = 1});
  fill_sample_targets(second, data, {.step = 5, .first_sample = 8, .count = 1});
  CHECK(first == second);  // there is only one sample
}

TEST_CASE("CIFAR-10's records become images, channels last, and normalised have mean 0 and deviation 1") {
  const std::string bytes = record(3, 0, 51, '\xff') + record(7, 102, 51, '\xff');
  SampleData data{.shape = {.height = 32, .width = 32, .channels = 3}, .outputs = 10};
  data.images = parse_cifar10(bytes, "data_batch_1.bin", false);
  for (int step = 0; step < 4; ++step) {
    const BatchPlace place{.step = step, .count = 1};
    const std::vector<float> image = inputs_of(data, place);
    const bool first = labels_of(data, place)[0] == 3;
    CHECK(labels_of(data, place)[0] == (first ? 3 : 7));
    CHECK(image[0] == doctest::Approx(first ? 0.0F : 0.4F));
    CHECK(image[1] == doctest::Approx(0.2F));
    CHECK(image[2] == doctest::Approx(1.0F));
    CHECK(image[3] == image[0]);
  }
  const ImageSet normalised = parse_cifar10(bytes, "data_batch_1.bin", true);
  CHECK(normalised.mean[0] == doctest::Approx(0.2F));
  CHECK(normalised.deviation[0] == doctest::Approx(0.2F));
  CHECK(normalised.deviation[1] == 1.0F);  // all alike: nothing to divide by
}

TEST_CASE("an image is resized between its pixels' centres") {
  SampleData data{.shape = {.height = 1, .width = 4, .channels = 1}, .outputs = 2};
  data.images = {.height = 1, .width = 2, .channels = 1, .pixels = {0, 255}, .labels = {0}};
  // The centres of 4 pixels over 2 are at -0.25 (the edge), 0.25, 0.75 and 1.25 (the edge).
  const std::vector<float> image = inputs_of(data, {.count = 1});
  CHECK(image[0] == 0.0F);
  CHECK(image[1] == doctest::Approx(0.25F));
  CHECK(image[2] == doctest::Approx(0.75F));
  CHECK(image[3] == 1.0F);
}

TEST_CASE("a file that is not CIFAR-10 is refused by its name") {
  CHECK_THROWS_WITH_AS(parse_cifar10("short", "images.bin", false),
                       "images.bin has 5 bytes, and CIFAR-10's binary form has records of 3073: give data_batch_1.bin",
                       InputError);
  CHECK_THROWS_WITH_AS(parse_cifar10(record(12, 0, 0, 0), "images.bin", false),
                       "images.bin: the label of record 0 is 12, and CIFAR-10 has 10 classes: give its binary form",
                       InputError);
}

}  // namespace plumb::test
