// Faults of a network and of a processor, for processes that mpirun starts. The library is preloaded into plumb
// (LD_PRELOAD) and stands between the program and MPI, and between the program and the BLAS. It serves tests only, and
// the program knows nothing of it.
//
//   PLUMB_TEST_FAULT="corrupt RANK N TAG"   changes a bit of the N-th large message of floats with that tag (0:
//                                           activations, 1: gradients) that leaves RANK
//   PLUMB_TEST_FAULT="collective RANK N"    changes a bit of the N-th such message of any other tag: collectives
//   PLUMB_TEST_FAULT="nan RANK N"           makes the N-th matrix product of RANK give a NaN
//   PLUMB_TEST_FAULT="hang RANK N"          keeps back RANK's N-th message of bytes, which ranks exchange before and
//                                           after a replay, outside of the transport

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <cblas.h>
#include <dlfcn.h>
#include <mpi.h>

namespace {

constexpr int kLarge = 256;  // floats of a large message

struct Fault {
  std::string kind;
  int rank = -1;
  int number = 0;
  int tag = 0;
};

const Fault& fault() {
  static const Fault parsed = [] {
    Fault fault;
    const char* text = std::getenv("PLUMB_TEST_FAULT");
    if (text != nullptr) std::istringstream(text) >> fault.kind >> fault.rank >> fault.number >> fault.tag;
    return fault;
  }();
  return parsed;
}

int own_rank() {
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  return text == nullptr ? 0 : std::atoi(text);
}

/// Returns true once: at the chosen event of the chosen rank.
bool strikes(const char* kind) {
  static std::atomic<int> events{0};
  return fault().kind == kind && fault().rank == own_rank() && ++events == fault().number;
}

/// Returns the buffer, or a changed copy of it, which stays alive.
const void* on_its_way(const void* buffer, int count, MPI_Datatype type, int tag) {
  constexpr int kKinds = 2;  // kinds of messages between stages, which have the small tags
  static std::vector<std::uint32_t> copy;
  if (type != MPI_FLOAT || count < kLarge) return buffer;
  if (!(tag < kKinds ? tag == fault().tag && strikes("corrupt") : strikes("collective"))) return buffer;
  copy.resize(static_cast<std::size_t>(count));
  std::memcpy(copy.data(), buffer, copy.size() * sizeof copy[0]);
  copy[copy.size() / 2] ^= 1U;
  return copy.data();
}

}  // namespace

extern "C" {

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm group, MPI_Request* request) {
  if (type == MPI_BYTE && strikes("hang")) {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  return PMPI_Isend(on_its_way(buffer, count, type, tag), count, type, to, tag, group, request);
}

int MPI_Issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm group,
               MPI_Request* request) {
  return PMPI_Issend(on_its_way(buffer, count, type, tag), count, type, to, tag, group, request);
}

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transpose_a, CBLAS_TRANSPOSE transpose_b, blasint m, blasint n,
                 blasint k, float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                 blasint ldc) {
  using Product = decltype(&cblas_sgemm);
  static const auto product = reinterpret_cast<Product>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  product(layout, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (strikes("nan")) c[0] = std::numeric_limits<float>::quiet_NaN();
}

}  // extern "C"
