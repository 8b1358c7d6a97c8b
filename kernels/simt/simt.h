#pragma once
// Marks functions that run on a device and on the host.

#ifdef __CUDACC__
#define PLUMB_SIMT __host__ __device__ inline
#else
#define PLUMB_SIMT inline
#endif
