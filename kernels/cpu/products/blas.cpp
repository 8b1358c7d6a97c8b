#include "kernels/cpu/products/blas.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <type_traits>

namespace plumb { inline namespace kernels {
namespace {

#if PLUMB_LINKS_BLAS
BlasFunctions open() {
  return {&cblas_sgemm, &openblas_set_num_threads, &openblas_get_corename};
}
#else
BlasFunctions open() {
  if (dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw std::runtime_error(
        "there is no libopenblas.so.0 here: install OpenBLAS (libopenblas0), or name its folder in LD_LIBRARY_PATH");
  BlasFunctions found{};
  const auto find = [](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)> >(dlsym(RTLD_DEFAULT, name));
    if (function == nullptr)
      throw std::runtime_error(std::string("libopenblas.so.0 has no ") + name + ": install OpenBLAS 0.3 or newer");
  };
  find(found.sgemm, "cblas_sgemm");
  find(found.set_num_threads, "openblas_set_num_threads");
  find(found.get_corename, "openblas_get_corename");
  return found;
}
#endif

}  // namespace

const BlasFunctions& blas() {
  static const BlasFunctions kFunctions = open();
  return kFunctions;
}

}}  // namespace plumb::kernels
