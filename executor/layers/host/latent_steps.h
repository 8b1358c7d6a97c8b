#pragma once
// The steps of latent attention on the CPU that other blocks do not have (kernels/layer/emit/latent_attention.cpp).

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// True if the kernel is one of these.
bool is_latent(const HostStep& of);

/// Runs it: heads joined or split.
void run_latent_kernel(const HostStep& of);

/// Copies the last columns of rows to rows that have no others, and the first columns of wide rows to others.
void copy_last_columns(float* to, std::int64_t columns, const float* from, std::int64_t width, std::int64_t rows);
void copy_first_columns(float* to, std::int64_t to_width, const float* from, std::int64_t from_width,
                        std::int64_t columns, std::int64_t rows);

}}  // namespace plumb::executor
