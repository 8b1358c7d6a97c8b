// Registers the played CUDA as NVTX's profiler (nvtx3/nvtxDetail/nvtxInit.h, whose own definition is weak).

#include <cstdint>

extern "C" {
int plumb_played_nvtx(const void* (*get_table)(std::uint32_t));
extern int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t));
int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t)) = plumb_played_nvtx;
}
