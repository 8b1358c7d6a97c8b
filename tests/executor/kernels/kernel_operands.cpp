#include "tests/executor/kernels/kernel_operands.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "kernels/simt/number.h"

namespace plumb::test {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::byte kNoNumber{0xFF};

template <class T>
T loaded(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class S>
void store_at(std::byte* to, float value) {
  S rounded;
  store(rounded, value);
  std::memcpy(to, &rounded, sizeof rounded);
}

}  // namespace

KernelOperands::Tensor KernelOperands::append(Values values, std::int64_t elements, std::int64_t element_bytes,
                                              std::int64_t shift) {
  const std::size_t first =
      (bytes_.size() + 2 * kAlignment - 1) / kAlignment * kAlignment + static_cast<std::size_t>(shift * element_bytes);
  bytes_.resize(first + static_cast<std::size_t>(elements * element_bytes), kNoNumber);
  return tensors_.emplace_back(Tensor{values, first, elements, static_cast<std::size_t>(element_bytes)});
}

void KernelOperands::put(const Tensor& tensor, std::int64_t at, float value) {
  std::byte* to = bytes_.data() + tensor.first + static_cast<std::size_t>(at) * tensor.element_bytes;
  if (tensor.values == Values::kFloats || !half_) return store_at<float>(to, value);
  *half_ == HalfFormat::kBf16 ? store_at<Bf16>(to, value) : store_at<Fp16>(to, value);
}

float KernelOperands::number(std::span<const std::byte> image, const Tensor& tensor, std::int64_t at) const {
  const std::byte* from = image.data() + tensor.first + static_cast<std::size_t>(at) * tensor.element_bytes;
  if (tensor.values == Values::kFloats || !half_) return loaded<float>(from);
  return *half_ == HalfFormat::kBf16 ? widened(loaded<Bf16>(from)) : widened(loaded<Fp16>(from));
}

bool KernelOperands::is_untouched(std::span<const std::byte> image, const Tensor& tensor, std::int64_t at) const {
  const std::size_t first = tensor.first + static_cast<std::size_t>(at) * tensor.element_bytes;
  return std::ranges::equal(image.subspan(first, tensor.element_bytes),
                            std::span(bytes_).subspan(first, tensor.element_bytes));
}

void* KernelOperands::filled(Values values, std::int64_t elements, float scale, std::int64_t shift) {
  const Tensor tensor = append(values, elements, values == Values::kStored ? element_bytes() : 4, shift);
  std::uniform_real_distribution<float> distribution(-scale, scale);
  for (std::int64_t i = 0; i < elements; ++i) put(tensor, i, distribution(random_));
  return address_of(tensor);
}

float* KernelOperands::floats_of(std::span<const float> values) {
  const Tensor tensor = append(Values::kFloats, std::ssize(values), 4, 0);
  std::memcpy(bytes_.data() + tensor.first, values.data(), values.size_bytes());
  return static_cast<float*>(address_of(tensor));
}

std::int32_t* KernelOperands::integers_of(std::span<const std::int32_t> values) {
  const Tensor tensor = append(Values::kIntegers, std::ssize(values), 4, 0);
  std::memcpy(bytes_.data() + tensor.first, values.data(), values.size_bytes());
  return static_cast<std::int32_t*>(address_of(tensor));
}

std::int32_t* KernelOperands::integers(std::int64_t elements, std::int64_t end) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(elements));
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(size(0, end - 1));
  return integers_of(values);
}

std::uint8_t* KernelOperands::bytes(std::int64_t elements, Values values) {
  const Tensor tensor = append(values, elements, 1, 0);
  for (std::int64_t i = 0; i < elements; ++i)
    bytes_[tensor.first + static_cast<std::size_t>(i)] = static_cast<std::byte>(random_());
  return static_cast<std::uint8_t*>(address_of(tensor));
}

StepNumbers* KernelOperands::numbers(const StepNumbers& numbers) {
  const Tensor tensor = append(Values::kFloats, sizeof(StepNumbers) / 4, 4, 0);
  std::byte* to = bytes_.data() + tensor.first;
  std::memcpy(to, &numbers, offsetof(StepNumbers, fresh_share) + sizeof numbers.fresh_share);
  std::memcpy(to + offsetof(StepNumbers, replay), &numbers.replay, sizeof numbers.replay);
  return static_cast<StepNumbers*>(address_of(tensor));
}

KernelOperands::Twins KernelOperands::twins(std::int64_t elements) {
  const Tensor floats = append(Values::kFloats, elements, 4, 0),
               rounded = append(Values::kStored, elements, element_bytes(), 0);
  for (std::int64_t i = 0; i < elements; ++i) {
    const float value = static_cast<float>(size(-32, 32)) / 32;
    put(floats, i, value);
    put(rounded, i, value);
  }
  return {static_cast<float*>(address_of(floats)), address_of(rounded)};
}

void* KernelOperands::stored_room(std::int64_t elements) {
  return address_of(append(Values::kStored, elements, element_bytes(), 0));
}
float* KernelOperands::float_room(std::int64_t elements) {
  return static_cast<float*>(address_of(append(Values::kFloats, elements, 4, 0)));
}
std::int32_t* KernelOperands::integer_room(std::int64_t elements) {
  return static_cast<std::int32_t*>(address_of(append(Values::kIntegers, elements, 4, 0)));
}

std::vector<std::span<std::byte>> KernelOperands::tensors() const {
  std::vector<std::span<std::byte>> found;
  for (const Tensor& tensor : tensors_)
    found.emplace_back(base_ + tensor.first, static_cast<std::size_t>(tensor.elements) * tensor.element_bytes);
  return found;
}

std::string KernelOperands::difference(std::span<const std::byte> ours, std::span<const std::byte> reference,
                                       const Tolerance& tolerance) const {
  std::size_t end = 0;  // of what has been looked at
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    for (; end < tensor.first; ++end)
      if (ours[end] != kNoNumber) return fmt::format("a byte ahead of tensor {} was written", i);
    if (std::string found = difference_of(tensor, i, ours, reference, tolerance); !found.empty()) return found;
    end = tensor.first + static_cast<std::size_t>(tensor.elements) * tensor.element_bytes;
  }
  return {};
}

std::string KernelOperands::difference_of(const Tensor& tensor, std::size_t number_of_tensor,
                                          std::span<const std::byte> ours, std::span<const std::byte> reference,
                                          const Tolerance& tolerance) const {
  const std::size_t bytes = static_cast<std::size_t>(tensor.elements) * tensor.element_bytes;
  if (tensor.values == Values::kIntegers || tensor.values == Values::kCodes) {
    const int allowed = tensor.values == Values::kCodes ? 1 : 0;
    for (std::size_t i = tensor.first; i < tensor.first + bytes; ++i)
      if (std::abs(std::to_integer<int>(ours[i]) - std::to_integer<int>(reference[i])) > allowed)
        return fmt::format("integers of tensor {} differ at byte {}", number_of_tensor, i - tensor.first);
    return {};
  }
  float largest = 0;
  for (std::int64_t i = 0; i < tensor.elements; ++i)
    if (const float value = std::abs(number(reference, tensor, i)); std::isfinite(value))
      largest = std::max(largest, value);
  const double allowed = (tensor.values == Values::kStored ? tolerance.stored : tolerance.floats) * largest;
  for (std::int64_t i = 0; i < tensor.elements; ++i) {
    const float own = number(ours, tensor, i), expected = number(reference, tensor, i);
    const bool is_near = own == expected || std::abs(own - expected) <= allowed;
    if (!is_near && !(is_untouched(ours, tensor, i) && is_untouched(reference, tensor, i)))
      return fmt::format("element {} of {} of tensor {} is {} and not {}, of {} at most", i, tensor.elements,
                         number_of_tensor, own, expected, largest);
  }
  return {};
}

}  // namespace plumb::test
