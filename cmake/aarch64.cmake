# Cross-compiles for 64-bit ARM; ctest then runs under qemu-user.
#
#   cmake --preset aarch64 -DBLOOMLINE_SYSROOT=DIR        (or the environment variable BLOOMLINE_SYSROOT)
#
# The compiler and the C library come from g++-aarch64-linux-gnu, the emulator from qemu-user. DIR holds the arm64
# versions of the other libraries, unpacked (dpkg -x): libhwy-dev libhwy1 libhwloc-dev libhwloc15 libxxhash-dev
# libxxhash0 libgtest-dev libbenchmark-dev libbenchmark1debian libnuma-dev libnuma1 libudev1 libltdl7 libcli11-dev
# nlohmann-json3-dev.
# BLOOMLINE_QEMU_CPU picks the emulated processor: max (SVE2), cortex-a72 (NEON), a64fx (SVE).
if(NOT BLOOMLINE_SYSROOT)
  set(BLOOMLINE_SYSROOT "$ENV{BLOOMLINE_SYSROOT}")
endif()
set(BLOOMLINE_SYSROOT "${BLOOMLINE_SYSROOT}" CACHE PATH "Folder with the arm64 libraries" FORCE)
set(BLOOMLINE_QEMU_CPU max CACHE STRING "qemu-aarch64 -cpu")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BLOOMLINE_SYSROOT)
if(NOT IS_DIRECTORY "${BLOOMLINE_SYSROOT}/usr")
  message(FATAL_ERROR "BLOOMLINE_SYSROOT is '${BLOOMLINE_SYSROOT}'; it must be a folder with usr/include and usr/lib of "
                      "the arm64 packages that cmake/aarch64.cmake lists")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(sysroot_lib "${BLOOMLINE_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH "${BLOOMLINE_SYSROOT}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${BLOOMLINE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${sysroot_lib}/pkgconfig:${BLOOMLINE_SYSROOT}/usr/share/pkgconfig")

set(CMAKE_CXX_FLAGS_INIT "-isystem ${BLOOMLINE_SYSROOT}/usr/include/aarch64-linux-gnu")
set(rpath_link "-Wl,-rpath-link,${sysroot_lib} -Wl,-rpath-link,${BLOOMLINE_SYSROOT}/lib/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${rpath_link}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${rpath_link}")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu
  -E "LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib:${sysroot_lib}:${BLOOMLINE_SYSROOT}/lib/aarch64-linux-gnu"
  -cpu "${BLOOMLINE_QEMU_CPU}")
