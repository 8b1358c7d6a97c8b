#pragma once
// A short list of tensors or parameters by their positions in a program. It needs no memory besides its own, because
// searches make many programs.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace plumb { inline namespace kernels {

class Positions {
 public:
  static constexpr std::size_t kMost = 14;

  Positions() = default;
  Positions(std::initializer_list<int> positions) { append(positions); }

  void push_back(int position) {
    assert(count_ < kMost);
    positions_[count_++] = static_cast<std::int16_t>(position);
  }
  template <class List>
  void append(const List& positions) {
    for (const int position : positions) push_back(position);
  }
  void erase(int position) {
    count_ = static_cast<std::uint8_t>(std::remove(begin(), end(), static_cast<std::int16_t>(position)) - begin());
  }

  std::int16_t* begin() { return positions_.data(); }
  std::int16_t* end() { return positions_.data() + count_; }
  const std::int16_t* begin() const { return positions_.data(); }
  const std::int16_t* end() const { return positions_.data() + count_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  int front() const { return positions_[0]; }
  int operator[](std::size_t i) const { return positions_[i]; }
  std::int16_t& operator[](std::size_t i) { return positions_[i]; }

  /// True if the list has that position.
  bool has(int position) const { return std::find(begin(), end(), position) != end(); }

 private:
  std::array<std::int16_t, kMost> positions_{};
  std::uint8_t count_ = 0;
};

}}  // namespace plumb::kernels
