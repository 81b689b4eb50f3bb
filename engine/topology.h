// The sizes of the caches that filters are laid out for.
#pragma once

#include <cstdint>

namespace bloomline::detail {

// The data caches that one core sees, in bytes; 0: there is none or it is unknown.
struct CacheSizes {
  uint64_t l1 = 0;
  uint64_t l2 = 0;
  uint64_t l3 = 0;
};

// Those of Topology::Machine(), or the C library's where that is not this machine's.
const CacheSizes& MachineCaches();

}  // namespace bloomline::detail
