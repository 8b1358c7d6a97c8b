#pragma once
// The exchange of heads for tokens in a context group (Ulysses: Jacobs et al. 2023): rows of own tokens become rows of
// whole sequences with a share of the heads, and back.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Enqueues an all-to-all of ExchangeGroup::kContext. What attention reads goes to heads, all else back to tokens. own:
/// [b*S, width], whole: [b*s, width / n]
void exchange_heads(const StepCall& of);

}}  // namespace plumb::executor
