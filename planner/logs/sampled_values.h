#pragma once
// Numbers that a file prints one after the other. Of a long file a sample is kept, so that its length does not matter.
//
//   SampledValues values;
//   for each number: values.add(number);
//   median_of(values.kept());

#include <cstddef>
#include <vector>

namespace plumb { inline namespace planner {

class SampledValues {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 16;  // even

  /// Takes the next number. All are kept while there are at most kMost. Of more, every second, fourth, ... is kept from
  /// the first on, so that at least half of kMost are.
  void add(double value) {
    const std::size_t index = count_++;
    if (index % stride_ != 0) return;
    if (kept_.size() == kMost) {
      for (std::size_t i = 0; i < kMost / 2; ++i) kept_[i] = kept_[2 * i];
      kept_.resize(kMost / 2);
      stride_ *= 2;
    }
    kept_.push_back(value);
  }

  /// The sample in its order. The first number is always its first.
  const std::vector<double>& kept() const { return kept_; }
  /// How many numbers there were.
  std::size_t count() const { return count_; }

 private:
  std::vector<double> kept_;
  std::size_t count_ = 0, stride_ = 1;
};

}}  // namespace plumb::planner
