#pragma once
// The ends of a model that may share one table (Press & Wolf 2017).

#include <cstdint>

namespace plumb { inline namespace executor {

/// The end of the model at which a tied table is used: as the embedding, or as the head's projection.
enum class ModelEnd : std::uint8_t { kEmbedding, kHead };

}}  // namespace plumb::executor
