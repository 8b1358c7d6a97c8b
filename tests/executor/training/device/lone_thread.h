#pragma once
// A block of one lane, for kernels' bodies on the host.

namespace plumb::test {

/// The only lane of its block: nobody to wait for. Races of several lanes are the business of the bodies' own tests.
class LoneThread {
 public:
  static constexpr int kFewestLanes = 1;  ///< a body's room for what lanes divide: all of it

  LoneThread(int block, int blocks, float& shared) : block_(block), blocks_(blocks), shared_(&shared) {}
  int block() const { return block_; }
  int blocks() const { return blocks_; }
  static int lane() { return 0; }
  static int lanes() { return 1; }
  float* shared() const { return shared_; }
  static void sync() {}

 private:
  int block_, blocks_;
  float* shared_;
};

}  // namespace plumb::test
