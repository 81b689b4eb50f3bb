# Finds what the library is built from. Also installed: a consumer that links the static library needs the same
# targets. None of them is needed to use the shared library.
#
# Sets bloomline_missing to the names of what was not found.
set(bloomline_missing "")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads QUIET)
if(NOT TARGET Threads::Threads)
  list(APPEND bloomline_missing "POSIX threads")
endif()

find_package(PkgConfig QUIET)
if(NOT PkgConfig_FOUND)
  list(APPEND bloomline_missing "pkg-config")
endif()

if(NOT TARGET hwy::hwy)
  find_package(hwy 1.0.3 QUIET CONFIG)
endif()
if(NOT TARGET hwy::hwy)
  list(APPEND bloomline_missing "Highway 1.0.3 or newer (libhwy-dev)")
endif()

if(PkgConfig_FOUND)
  if(NOT TARGET PkgConfig::hwloc)
    pkg_check_modules(hwloc QUIET IMPORTED_TARGET hwloc>=2.0)
  endif()
  if(NOT TARGET PkgConfig::xxhash)
    pkg_check_modules(xxhash QUIET IMPORTED_TARGET libxxhash>=0.8)
  endif()
endif()
if(NOT TARGET PkgConfig::hwloc)
  list(APPEND bloomline_missing "hwloc 2.0 or newer (libhwloc-dev)")
endif()
if(NOT TARGET PkgConfig::xxhash)
  list(APPEND bloomline_missing "xxHash 0.8 or newer (libxxhash-dev)")
endif()
