#!/usr/bin/env bash
# Installs a build tree into a temporary prefix, moves that, and builds and runs small programs against it: by CMake's
# find_package and by pkg-config, shared and static, with and without exceptions.
#
#   tests/consumer/run.sh BUILD_DIR
set -euo pipefail

build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cmake=${CMAKE_COMMAND:-cmake}
cxx=${CXX:-c++}
version=${VERSION:-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { echo "-- $*"; }
# run PROGRAM: runs it, and says which one it was when it fails.
run() {
  local status=0
  "$1" "$work/filter.bloom" "$version" || status=$?
  if ((status != 0)); then
    echo "$1 ended with $status; see the return statements of its source" >&2
    exit 1
  fi
}

step "install"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || {
  cat "$work/install.log"
  exit 1
}
# A prefix that moved shows paths that were written down as absolute ones.
mv "$work/first" "$work/prefix"
prefix=$work/prefix
if grep -rIl -F -e "$build" -e "$work/first" "$prefix"; then
  echo "the files above name the build tree or the old prefix" >&2
  exit 1
fi

step "the program"
"$prefix"/bin/bloomline --version | grep -F -e "$version"

step "find_package"
if ! { "$cmake" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_BUILD_TYPE=Release && "$cmake" --build "$work/build"; } >"$work/cmake.log" 2>&1; then
  cat "$work/cmake.log"
  exit 1
fi
for program in throwing_shared throwing_static no_exceptions_shared no_exceptions_static; do
  run "$work/build/$program"
done
ldd "$work/build/throwing_shared" | grep -F "$prefix" >/dev/null || {
  echo "throwing_shared does not use the installed library" >&2
  exit 1
}
if ldd "$work/build/throwing_static" | grep libbloomline; then
  echo "throwing_static uses a shared library" >&2
  exit 1
fi

step "pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name bloomline.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir bloomline)
[[ $(pkg-config --modversion bloomline) == "$version" ]]
read -ra cflags <<<"$(pkg-config --cflags bloomline)"
read -ra shared <<<"$(pkg-config --libs bloomline)"
read -ra static <<<"$(pkg-config --static --libs bloomline)"
"$cxx" -std=c++20 "${cflags[@]}" "$here/throwing.cc" -o "$work/pc_shared" "${shared[@]}" -Wl,-rpath,"$libdir"
run "$work/pc_shared"
static=("${static[@]/#-lbloomline/-l:libbloomline.a}")
"$cxx" -std=c++20 -fno-exceptions "${cflags[@]}" "$here/no_exceptions.cc" -o "$work/pc_static" "${static[@]}"
run "$work/pc_static"

step "exported symbols"
# Only bloomline's own names, and what C++ shares between libraries.
if nm -D --defined-only -C "$libdir/libbloomline.so" | grep -E ' [TBDR] ' | grep -v -E ' bloomline::'; then
  echo "the symbols above are exported and are not in namespace bloomline" >&2
  exit 1
fi
if nm -D --defined-only -C "$libdir/libbloomline.so" | grep -E 'hwy::|N_AVX|N_SSE'; then
  echo "the symbols above are internal and are exported" >&2
  exit 1
fi
echo "consumer: ok"
