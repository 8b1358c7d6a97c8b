#pragma once
// Values of one type in a machine's memory: allocated, uploaded.

#include <cstdint>
#include <span>

#include "executor/machines/device_machine.h"

namespace plumb { inline namespace executor {

/// Returns memory of that many zeros. Throws what DeviceMachine::allocate does.
template <class T>
T* allocate_elements(DeviceMachine& machine, std::int64_t elements) {
  return reinterpret_cast<T*>(machine.allocate(elements * static_cast<std::int64_t>(sizeof(T))));
}

/// Uploads all values. to: as many, also of a type that is as wide
template <class T>
void upload_all(DeviceMachine& machine, void* to, std::span<const T> from) {
  machine.upload(to, std::as_bytes(from));
}

}}  // namespace plumb::executor
