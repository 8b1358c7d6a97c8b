#include "kernels/cpu/rotary.h"

#include <cmath>

namespace plumb { inline namespace kernels {

std::vector<float> rotary_table(std::int64_t sequence, std::int64_t rotary_size, double theta) {
  const std::int64_t half = rotary_size / 2;
  std::vector<float> table(static_cast<std::size_t>(sequence * rotary_size));
  for (std::int64_t position = 0; position < sequence; ++position) {
    float* row = table.data() + position * rotary_size;
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_size));
      const double angle = static_cast<double>(position) * frequency;
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

void rotary(float* x, const float* table, const RotarySize& size, RotaryDirection direction) {
  const std::int64_t half = size.rotary_size / 2;
  const float sign = direction == RotaryDirection::kForward ? 1.0F : -1.0F;
  for (std::int64_t token = 0; token < size.tokens; ++token) {
    const float* cosine = table + (token % size.sequence) * size.rotary_size;
    const float* sine = cosine + half;
    for (std::int64_t head = 0; head < size.heads; ++head) {
      float* low = x + token * size.row_width + head * size.head_size;
      float* high = low + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = low[i], b = high[i], turn = sign * sine[i];
        low[i] = a * cosine[i] - b * turn;
        high[i] = b * cosine[i] + a * turn;
      }
    }
  }
}

}}  // namespace plumb::kernels
