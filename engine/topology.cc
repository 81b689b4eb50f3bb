#include "engine/topology.h"

#include <hwloc.h>
#include <unistd.h>

namespace bloomline::detail {
namespace {

uint64_t CacheOf(hwloc_topology_t topology, hwloc_obj_type_t type) {
  hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  return cache == nullptr || cache->attr == nullptr ? 0 : cache->attr->cache.size;
}

uint64_t Sysconf(int name) {
  const auto value = sysconf(name);
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

CacheSizes Read() {
  CacheSizes sizes;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) {
      sizes = {CacheOf(topology, HWLOC_OBJ_L1CACHE), CacheOf(topology, HWLOC_OBJ_L2CACHE),
               CacheOf(topology, HWLOC_OBJ_L3CACHE)};
    }
    hwloc_topology_destroy(topology);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (sizes.l1 == 0) sizes.l1 = Sysconf(_SC_LEVEL1_DCACHE_SIZE);
  if (sizes.l2 == 0) sizes.l2 = Sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (sizes.l3 == 0) sizes.l3 = Sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return sizes;
}

}  // namespace

const CacheSizes& MachineCaches() {
  static const CacheSizes sizes = Read();
  return sizes;
}

}  // namespace bloomline::detail
