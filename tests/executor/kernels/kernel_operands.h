#pragma once
// The tensors of one call of DeviceKernels, with the same random values on every machine that it is tried on, and
// their bytes after it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/half_format.h"
#include "kernels/step_numbers.h"

namespace plumb::test {

enum class Values : std::uint8_t {
  kStored,    ///< in the kernels' format
  kFloats,    ///< fp32
  kIntegers,  ///< 32 bits, or bytes: the same everywhere
  kCodes      ///< bytes: the nearest of values that numbers rounded otherwise may lie between
};

/// Hands out tensors behind each other, from an address on that is the machine's, and keeps their bytes. Between them,
/// and where none has been filled in, all bits are set: fp32, bf16 and fp16 that are no numbers.
class KernelOperands {
 public:
  /// `base`: a multiple of 256, of the machine's memory.
  KernelOperands(std::byte* base, std::optional<HalfFormat> half, unsigned seed)
      : base_(base), half_(half), random_(seed) {}

  /// Returns a random size from `least` to `most`.
  std::int64_t size(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<unsigned>(most - least + 1));
  }
  bool coin() { return random_() % 2 == 0; }
  unsigned word() { return static_cast<unsigned>(random_()); }

  /// Random numbers from -scale to scale, as they are stored.
  void* stored(std::int64_t elements, float scale = 1) { return filled(Values::kStored, elements, scale, 0); }
  /// Random numbers at no more than the alignment that weights behind each other have.
  void* weights(std::int64_t elements, float scale = 1) { return filled(Values::kStored, elements, scale, size(0, 8)); }
  float* floats(std::int64_t elements, float scale = 1) {
    return static_cast<float*>(filled(Values::kFloats, elements, scale, 0));
  }
  float* floats_of(std::span<const float> values);
  std::int32_t* integers_of(std::span<const std::int32_t> values);
  /// Random integers from 0 to end - 1.
  std::int32_t* integers(std::int64_t elements, std::int64_t end);
  std::uint8_t* bytes(std::int64_t elements, Values values = Values::kIntegers);
  StepNumbers* numbers(const StepNumbers& numbers);

  /// fp32 and stored twins of numbers that every format has.
  struct Twins {
    float* floats;
    void* stored;
  };
  Twins twins(std::int64_t elements);

  // Filled with bits that are no number.
  void* stored_room(std::int64_t elements);
  float* float_room(std::int64_t elements);
  std::int32_t* integer_room(std::int64_t elements);

  std::int64_t element_bytes() const { return half_ ? 2 : 4; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// The memory of every tensor, in the order in which they were asked for.
  std::vector<std::span<std::byte>> tensors() const;

  /// Differences of `ours` and `reference`, both whole images of all tensors after the call; empty: they differ by
  /// rounding alone, and only numbers that neither has touched are NaN in either. `tolerance`: relative to the largest
  /// number of a tensor, one for stored and one for fp32 tensors.
  struct Tolerance {
    double stored = 0, floats = 0;
  };
  std::string difference(std::span<const std::byte> ours, std::span<const std::byte> reference,
                         const Tolerance& tolerance) const;

 private:
  struct Tensor {
    Values values = Values::kStored;
    std::size_t first = 0;  // byte
    std::int64_t elements = 0;
    std::size_t element_bytes = 0;
  };

  /// `shift`: elements behind a multiple of 256 bytes.
  Tensor append(Values values, std::int64_t elements, std::int64_t element_bytes, std::int64_t shift);
  void* filled(Values values, std::int64_t elements, float scale, std::int64_t shift);
  void* address_of(const Tensor& tensor) const { return base_ + tensor.first; }
  void put(const Tensor& tensor, std::int64_t at, float value);
  float number(std::span<const std::byte> image, const Tensor& tensor, std::int64_t at) const;
  bool is_untouched(std::span<const std::byte> image, const Tensor& tensor, std::int64_t at) const;
  std::string difference_of(const Tensor& tensor, std::size_t number_of_tensor, std::span<const std::byte> ours,
                            std::span<const std::byte> reference, const Tolerance& tolerance) const;

  std::byte* base_;
  std::optional<HalfFormat> half_;
  std::mt19937 random_;
  std::vector<std::byte> bytes_;
  std::vector<Tensor> tensors_;
};

}  // namespace plumb::test
