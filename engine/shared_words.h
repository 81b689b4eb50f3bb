// Reading words that other threads may be writing to with atomic operations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bloomline::detail {

// Each word as it is at one moment, by a relaxed atomic load; as fast as memory delivers them.
inline void CopySharedWords(const uint64_t* from, uint64_t* to, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    to[i] = std::atomic_ref<uint64_t>(const_cast<uint64_t&>(from[i])).load(std::memory_order_relaxed);
  }
}

}  // namespace bloomline::detail
