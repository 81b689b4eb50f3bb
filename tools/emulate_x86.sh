#!/usr/bin/env bash
# Runs the natively built tests as older x86 processors, emulated by qemu-x86_64: the kernels of SSE4, SSSE3, AVX2 and
# SCALAR on processors that have no more, where one instruction too many is a crash. There is no AVX-512 in emulation.
#
#   tools/emulate_x86.sh [--skip-missing] [TARGET...]
#     TARGET  SSE4 (Westmere), SSSE3 (Nehalem), AVX2 (Haswell), SCALAR (qemu64); all of them by default
#     --skip-missing  where the emulator cannot be had, print SKIPPED and why, and end with 0
#
# BUILD_DIR (default build) is the build tree, JOBS how many compilers at once. One line per processor says what ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

script=emulate_x86.sh
build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}
skip_missing=false
all=(SSE4 SSSE3 AVX2 SCALAR)
targets=()
for argument in "$@"; do
  case $argument in
    --skip-missing) skip_missing=true ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    SSE4 | SSSE3 | AVX2 | SCALAR) targets+=("$argument") ;;
    *)
      echo "$script: unknown argument '$argument'; known are: --skip-missing --help ${all[*]}" >&2
      exit 2
      ;;
  esac
done
((${#targets[@]})) || targets=("${all[@]}")
. tools/emulation/stages.sh

[[ $(uname -m) == x86_64 ]] || missing "this machine is $(uname -m), and the programs to emulate are x86-64 ones"
install_groups build test emulators

mkdir -p "$build"
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
[[ -e $build/CMakeCache.txt ]] || quietly env CXX="${CXX:-g++}" cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release
quietly cmake --build "$build" -j "$jobs" --target bloomline_cli "${emulated_tests[@]}"

for target in "${targets[@]}"; do
  case $target in
    SSE4) cpu=Westmere ;;
    SSSE3) cpu=Nehalem ;;
    AVX2) cpu=Haswell ;;
    SCALAR) cpu=qemu64 ;;
  esac
  run_target "$cpu" "$target" qemu-x86_64 -cpu "$cpu"
done
