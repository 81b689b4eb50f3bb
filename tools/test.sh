#!/usr/bin/env bash
# Sets up, builds and tests everything on this machine; needs no terminal and reads nothing.
#
#   tools/test.sh           g++ build, all default tests; then those of memory placement on an emulated machine with
#                           two NUMA nodes (tools/numa_vm.sh); the instruction counts of the kernels
#                           (tools/instructions.sh); then a clang build, warnings as errors
#   tools/test.sh --quick   the g++ build and its tests only
#
# BUILD_DIR (default build) and CLANG_BUILD_DIR (default build-clang) say where; JOBS how many compilers at once.
# The last line counts the tests. The large runs are apart: ctest --test-dir build -L large
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

quick=false
case "${1:-}" in
  "") ;;
  --quick) quick=true ;;
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *)
    echo "test.sh: unknown argument '$1'; known are: --quick --help" >&2
    exit 2
    ;;
esac

build=${BUILD_DIR:-build}
clang_build=${CLANG_BUILD_DIR:-build-clang}
jobs=${JOBS:-$(nproc)}
SECONDS=0

stage() { printf '== %3d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

# Runs a command that talks a lot; shows what it said only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    # The first error explains; with make -j it may stand far above the end.
    grep -n -m 20 -E 'error|Error' "$log" >&2 || true
    tail -n 60 "$log" >&2
    rm -f "$log"
    echo "test.sh: failed: $*" >&2
    exit 1
  fi
  rm -f "$log"
}

stage "packages"
if $quick; then
  tools/setup.sh build test
else
  tools/setup.sh build test bench plots
fi

# A compiler cache, where there is one that works.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

stage "configure $build (g++)"
# CXX counts at the first configuration only: a build tree that is there keeps its compiler.
quietly env CXX="${CXX:-g++}" cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release
stage "build $build"
quietly cmake --build "$build" -j "$jobs"

stage "test"
results=$(mktemp)
trap 'rm -f "$results"' EXIT
set +e
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error --output-junit "$results" |
  grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed )'
status=${PIPESTATUS[0]} # of ctest, not of the filter behind it
set -e

numa_passed=0 numa_failed=0 numa_skipped=0

# Runs test programs on the emulated machine and counts their tests: numa_tests OPTION... PROGRAM ARGUMENT...
numa_tests() {
  local log ended=0 passed failed skipped
  log=$(mktemp)
  BUILD_DIR=$build tools/numa_vm.sh --timeout 240 --env BLOOMLINE_EXPECT_NODES=2 "$@" >"$log" 2>&1 || ended=$?
  passed=$(grep -c -E '^\[       OK \] ' "$log") || true # grep -c ends with 1 when it counts 0
  failed=$(grep -c -E '^\[  FAILED  \] .* ms\)$' "$log") || true
  skipped=$(grep -c -E '^\[  SKIPPED \] .* ms\)$' "$log") || true
  if ((ended != 0 || passed == 0)); then
    status=1
    ((failed != 0)) || failed=1 # a program that crashed or tested nothing, or a machine that did not report
    sed -E '/^\[ RUN /d; /^\[       OK /d' "$log" | tail -n 60 >&2
  fi
  rm -f "$log"
  numa_passed=$((numa_passed + passed)) numa_failed=$((numa_failed + failed)) numa_skipped=$((numa_skipped + skipped))
}

numa_stage() {
  local said available
  if ! said=$(BUILD_DIR=$build tools/numa_vm.sh --prepare 2>&1); then
    echo "SKIPPED NUMA machine: ${said#numa_vm.sh: }"
    return
  fi
  numa_tests --also "$build/tests/numa_replicas_test" --also "$build/tests/numa_restricted_test" \
    --also "$build/tests/seccomp_test" "$build/tests/numa_test"
  available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
  if ((${available:-0} < 5 << 20)); then
    echo "SKIPPED NUMA machine with huge pages: it takes 4 GiB of memory, and 5 GiB are not available"
  else
    numa_tests --memory 3072 --hugepages-2m 64 --hugepages-1g 2 --env BLOOMLINE_EXPECT_HUGEPAGES=1 \
      "$build/tests/numa_huge_pages_test" --gtest_filter='HugePages.*'
  fi
  echo "NUMA machine: $numa_passed passed, $numa_failed failed, $numa_skipped skipped"
}

if ! $quick; then
  stage "NUMA machine"
  numa_stage

  stage "instructions per key"
  if tools/setup.sh gate; then
    tools/instructions.sh -B "$build" || status=1
  else
    echo "SKIPPED instructions per key: valgrind is not to be had"
  fi

  clang=$(command -v clang++-14 || command -v clang++)
  stage "configure $clang_build ($clang)"
  quietly env CXX="$clang" cmake -S . -B "$clang_build" -DCMAKE_BUILD_TYPE=Release
  stage "build $clang_build"
  quietly cmake --build "$clang_build" -j "$jobs"
fi
stage "done"

# <testsuite ... tests="N" failures="N" disabled="N" skipped="N" ...>
count() { grep -o -m 1 -E "\b$1=\"[0-9]+\"" "$results" | head -n 1 | tr -dc 0-9; }
total=$(count tests) failed=$(count failures) skipped=$(($(count disabled) + $(count skipped)))
passed=$((total - failed - skipped + numa_passed)) failed=$((failed + numa_failed)) skipped=$((skipped + numa_skipped))
line="$passed passed, $failed failed"
((skipped == 0)) || line+=", $skipped skipped"
echo "$line"
exit "$status"
