// What the engine knows of the machine. hwloc is asked here and nowhere else.
#pragma once

#include <cstdint>

namespace bloomline::detail {

// The data caches that one core sees, in bytes; 0: there is none or it is unknown.
struct CacheSizes {
  uint64_t l1 = 0;
  uint64_t l2 = 0;
  uint64_t l3 = 0;
};

// Asked of hwloc once per process; of the C library where hwloc may not look (containers, seccomp).
const CacheSizes& MachineCaches();

}  // namespace bloomline::detail
