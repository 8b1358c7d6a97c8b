#include "tools/machine/large_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace plumb { inline namespace tools {

void use_large_pages() {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  constexpr std::size_t kHeap = std::size_t{256} << 20;  // of addresses: memory is taken when it is written to
  constexpr int kLargestOnHeap = 32 << 20;               // the most that every glibc allows
  constexpr std::size_t kStep = std::size_t{128} << 10;  // by which the heap grows behind that: glibc's own
  mallopt(M_MMAP_THRESHOLD, kLargestOnHeap);
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * kHeap));
  mallopt(M_TOP_PAD, static_cast<int>(kHeap));
  const auto start = reinterpret_cast<std::uintptr_t>(sbrk(0));
  void* volatile probe = std::malloc(kLargePage);  // the heap grows by all of it, or stays as it is
  std::free(probe);
  mallopt(M_TOP_PAD, static_cast<int>(kStep));
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const std::uintptr_t first = (start + kLargePage - 1) / kLargePage * kLargePage;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}}  // namespace plumb::tools
