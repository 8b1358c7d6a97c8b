#pragma once
// The interface between a GPU kernel's body and the thread that runs it. A body is a struct of its arguments with
//
//   template <class Thread> PLUMB_SIMT void operator()(const Thread& thread) const;
//
// and is written once: kernels/cuda/launch.cuh runs it on a device, and the tests run it on the host, a block's threads
// as threads (tests/kernels/simt/run_on_host.h), where sanitizers see its races. A Thread has
//
//   block(), blocks()    the index of its block, and the number of blocks
//   lane(), lanes()      its index in the block, and the number of threads in a block, a power of two
//   shared()             `lanes` floats that the block shares
//   sync()               waits for all lanes of the block
//
// A block takes rows (or stretches of elements) block, block + blocks, ..., so that any number of blocks computes the
// same, bit for bit. Sums run in an order that only the number of lanes decides. There are no atomics.

#include <cmath>
#include <cstdint>

#include "kernels/simt/simt.h"

namespace plumb { inline namespace kernels {

/// Bytes that a block of a plain body shares.
constexpr std::int64_t shared_bytes_of(int lanes) {
  return std::int64_t{lanes} * static_cast<std::int64_t>(sizeof(float));
}

/// Calls body(i) for each element that falls to this thread.
template <class Thread, class Body>
PLUMB_SIMT void for_each_element(const Thread& thread, std::int64_t elements, const Body& body) {
  const std::int64_t stride = static_cast<std::int64_t>(thread.blocks()) * thread.lanes();
  for (std::int64_t i = static_cast<std::int64_t>(thread.block()) * thread.lanes() + thread.lane(); i < elements;
       i += stride)
    body(i);
}

/// Returns the power of two at or above the root of `lanes`, which are a power of two up to 1024.
PLUMB_SIMT constexpr int root_of_lanes(int lanes) {
  return lanes > 256 ? 32 : lanes > 64 ? 16 : lanes > 16 ? 8 : lanes > 4 ? 4 : lanes > 1 ? 2 : 1;
}

/// Combines the block's values and returns the result to all lanes. Every lane must call it. With n the power of two at
/// or above the root of `lanes`, lane i < n combines the values of lanes i, i + n, i + 2n, ..., and then every lane
/// combines these n results in ascending order.
template <class Thread, class Combine>
PLUMB_SIMT float combine_over_block(const Thread& thread, float value, const Combine& combine) {
  float* shared = thread.shared();
  const int firsts = root_of_lanes(thread.lanes());
  shared[thread.lane()] = value;
  thread.sync();
  if (thread.lane() < firsts) {
    float own = value;
    for (int i = thread.lane() + firsts; i < thread.lanes(); i += firsts) own = combine(own, shared[i]);
    shared[thread.lane()] = own;
  }
  thread.sync();
  float result = shared[0];
  for (int i = 1; i < firsts; ++i) result = combine(result, shared[i]);
  thread.sync();  // before any lane writes there again
  return result;
}

struct Add {
  PLUMB_SIMT float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  PLUMB_SIMT float operator()(float a, float b) const { return a > b ? a : b; }
};

/// Returns the sum over c of value(c). Each lane adds its own columns in ascending order.
template <class Thread, class Value>
PLUMB_SIMT float sum_over_row(const Thread& thread, std::int64_t columns, const Value& value) {
  float own = 0;
  for (std::int64_t c = thread.lane(); c < columns; c += thread.lanes()) own += value(c);
  return combine_over_block(thread, own, Add{});
}

}}  // namespace plumb::kernels
