# Sourced by tools/test.sh: what each stage does. In this order, the cheap ones first.

default_stages=(build native readme consumers numa instructions x86 clang tsan)
# By name (--stage) only: together they take longer than all others.
more_stages=(asan fuzz aarch64 cross_files)
all_stages=("${default_stages[@]}" "${more_stages[@]}")
quick_stages=(build native readme)

build=${BUILD_DIR:-build}
clang_build=${CLANG_BUILD_DIR:-build-clang}
asan_build=${ASAN_BUILD_DIR:-build-asan}
tsan_build=${TSAN_BUILD_DIR:-build-tsan}
aarch64_build=${AARCH64_BUILD_DIR:-build-aarch64}

describe_stage() {
  case $1 in
    build) echo "everything, by g++, warnings as errors" ;;
    native) echo "all tests, on every SIMD target that this processor has" ;;
    readme) echo "the README's C++ compiles and runs" ;;
    consumers) echo "programs outside of the tree use the installed library" ;;
    numa) echo "memory placement on an emulated machine with two NUMA nodes" ;;
    instructions) echo "instructions per key of the kernels, counted by callgrind" ;;
    x86) echo "the kernels on older processors under qemu: SSE4, SSSE3, AVX2, none of these" ;;
    clang) echo "everything, by clang, warnings as errors" ;;
    asan) echo "all tests by clang with AddressSanitizer and UBSan" ;;
    tsan) echo "the tests of what several threads do, by ThreadSanitizer" ;;
    aarch64) echo "cross-built for 64-bit ARM; NEON, SVE and SVE2 under qemu" ;;
    cross_files) echo "files written here, by older x86 and by ARM are equal and read by each other" ;;
    fuzz) echo "the fuzzers, from their corpora on" ;;
  esac
}

# A compiler cache, where there is one that works.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

stage_build() {
  packages build test bench plots
  # CXX counts at the first configuration only: a build tree that is there keeps its compiler.
  quietly env CXX="${CXX:-g++}" cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release
  quietly cmake --build "$build" -j "$jobs"
  note "$(compiler_of "$build")"
}

compiler_of() { "$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$1/CMakeCache.txt")" --version | head -n 1; }

# "a b c" of an array of `bloomline targets --json`.
targets_list() { "$1/bin/bloomline" targets --json | tr -d ' \n' | sed -n "s/.*\"$2\":\[\([^]]*\)\].*/\1/p" | tr -d '"' | tr ',' ' '; }

# The targets that a processor with these /proc/cpuinfo flags must run, of those that the library is compiled for.
expected_targets() {
  local flags=" $(sed -n 's/^flags[^:]*: *//p' /proc/cpuinfo | head -n 1) "
  [[ $(uname -m) == x86_64 ]] || return 0
  [[ $flags != *" avx512_vbmi2 "* || $flags != *" vaes "* ]] || echo AVX3_DL
  [[ $flags != *" avx512bw "* || $flags != *" avx512vl "* ]] || echo AVX3
  [[ $flags != *" avx2 "* ]] || echo AVX2
  [[ $flags != *" sse4_2 "* ]] || echo SSE4
  [[ $flags != *" ssse3 "* ]] || echo SSSE3
  echo SCALAR
}

# Fails unless the kernels of every layout passed on every target that this processor should have.
require_targets() {
  local target seen=()
  for target in $(expected_targets); do
    grep -q -E "<testcase name=\"[^\"]*BatchLengths/${target}_split512|<testcase name=\"[^\"]*BatchLengths/${target}_z8" \
      "$scratch/junit.xml" || give_up "no kernel was tested on $target, which this processor has"
    seen+=("$target")
  done
  note "ran on ${seen[*]:-$(targets_list "$build" chosen)}"
}

stage_native() {
  local status=0
  run_ctest "$build" -E '^(consumer|readme_code)$' || status=1
  require_targets
  return "$status"
}

stage_readme() { run_ctest "$build" -R '^readme_code$'; }

stage_consumers() {
  packages build test
  run_ctest "$build" -R '^consumer$'
}

# Runs test programs on the emulated machine and counts their tests: numa_tests OPTION... PROGRAM ARGUMENT...
numa_tests() {
  local log=$scratch/numa ended=0 good bad skips
  BUILD_DIR=$build tools/numa_vm.sh --timeout 240 --env BLOOMLINE_EXPECT_NODES=2 "$@" >"$log" 2>&1 || ended=$?
  good=$(grep -c -E '^\[       OK \] ' "$log") || true # grep -c ends with 1 when it counts 0
  bad=$(grep -c -E '^\[  FAILED  \] .* ms\)$' "$log") || true
  skips=$(grep -c -E '^\[  SKIPPED \] .* ms\)$' "$log") || true
  passed "$good"
  ((skips == 0)) || skipped_tests "$skips"
  if ((ended != 0 || good == 0)); then
    sed -E '/^\[ RUN /d; /^\[       OK /d' "$log" | tail -n 60 >&2
    ((bad != 0)) || bad=1 # a program that crashed or tested nothing, or a machine that did not report
  fi
  ((bad == 0)) || failed "$bad"
}

stage_numa() {
  local said available
  packages numa
  said=$(BUILD_DIR=$build tools/numa_vm.sh --prepare 2>&1) || skip "${said#numa_vm.sh: }"
  numa_tests --also "$build/tests/numa_replicas_test" --also "$build/tests/numa_restricted_test" \
    --also "$build/tests/seccomp_test" "$build/tests/numa_test"
  available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
  ((${available:-0} >= 5 << 20)) || skip "huge pages: the emulated machine takes 4 GiB, and 5 GiB are not available"
  numa_tests --memory 3072 --hugepages-2m 64 --hugepages-1g 2 --env BLOOMLINE_EXPECT_HUGEPAGES=1 \
    "$build/tests/numa_huge_pages_test" --gtest_filter='HugePages.*'
  note "two nodes"
}

stage_instructions() {
  local said
  packages gate
  said=$(tools/instructions.sh -B "$build" 2>&1) || {
    echo "$said" >&2
    return 1
  }
  [[ $said != *SKIPPED* ]] || skip "$(grep -m 1 SKIPPED <<<"$said" | sed 's/^SKIPPED *//')"
  note "$(tail -n 1 <<<"$said")"
}

# Lines "TARGET ran on ...: N tests passed" of the emulation scripts.
count_emulated() {
  local line
  while read -r line; do
    [[ $line =~ ([0-9]+)\ tests\ passed ]] && passed "${BASH_REMATCH[1]}"
    [[ $line =~ ([0-9]+)\ skipped ]] && skipped_tests "${BASH_REMATCH[1]}"
  done <<<"$1"
  note "ran on $(sed -n 's/^\([A-Z0-9_]*\) *ran on .*/\1/p' <<<"$1" | sort -u | paste -s -d ' ')"
}

stage_x86() {
  [[ $(uname -m) == x86_64 ]] || skip "this machine is $(uname -m)"
  local said
  said=$(BUILD_DIR=$build tools/emulate_x86.sh --skip-missing 2>"$scratch/err") || {
    cat "$scratch/err" >&2
    return 1
  }
  [[ $said != *SKIPPED* ]] || skip "${said#*SKIPPED: }"
  count_emulated "$said"
}

stage_aarch64() {
  local said
  said=$(BUILD_DIR=$aarch64_build NATIVE_BUILD_DIR=$build tools/aarch64.sh --skip-missing NEON SVE SVE2 2>"$scratch/err") || {
    cat "$scratch/err" >&2
    return 1
  }
  [[ $said != *SKIPPED* ]] || skip "${said#*SKIPPED: }"
  count_emulated "$said"
}

stage_clang() {
  packages build test bench
  local clang
  clang=$(command -v clang++-14 || command -v clang++) || skip "no clang++"
  quietly env CXX="$clang" cmake -S . -B "$clang_build" -DCMAKE_BUILD_TYPE=Release
  quietly cmake --build "$clang_build" -j "$jobs"
  note "$(compiler_of "$clang_build")"
}

# With fewer targets and less optimisation than the others: see CMakePresets.json.
stage_asan() {
  packages build test
  local clang status=0
  clang=$(command -v clang++-14 || command -v clang++) || skip "no clang++"
  quietly env CXX="$clang" cmake --preset asan -B "$asan_build"
  quietly cmake --build "$asan_build" -j "$jobs"
  UBSAN_OPTIONS=print_stacktrace=1 run_ctest "$asan_build" || status=1
  require_targets_of "$asan_build"
  note "$(compiler_of "$asan_build")"
  return "$status"
}

# Of a build with fewer targets: those that it has were tested.
require_targets_of() {
  local target
  for target in $(targets_list "$1" supported); do
    grep -q "BatchLengths/${target}_" "$scratch/junit.xml" || give_up "no kernel was tested on $target in $1"
  done
  note "ran on $(targets_list "$1" supported)"
}

tsan_tests=(concurrent_filter_test concurrent_counting_test thread_pool_test parallel_test)

stage_tsan() {
  packages build test
  quietly env CXX="${CXX:-g++}" cmake --preset tsan -B "$tsan_build"
  quietly cmake --build "$tsan_build" -j "$jobs" --target "${tsan_tests[@]}"
  local test good
  for test in "${tsan_tests[@]}"; do
    TSAN_OPTIONS=halt_on_error=1 timeout 600 "$tsan_build/tests/$test" --gtest_filter='-*Large*' >"$scratch/tsan" 2>&1 || {
      grep -m 1 -A 30 'WARNING: ThreadSanitizer' "$scratch/tsan" >&2 || tail -n 40 "$scratch/tsan" >&2
      failed
      echo "test.sh: $test failed under ThreadSanitizer" >&2
      continue
    }
    good=$(grep -c -E '^\[       OK \]' "$scratch/tsan") || give_up "$test ran no test"
    passed "$good"
  done
}

stage_cross_files() {
  local said
  said=$(BUILD_DIR=$build CLANG_BUILD_DIR=$clang_build AARCH64_BUILD_DIR=$aarch64_build tools/cross_files.sh \
    2>"$scratch/err") || {
    cat "$scratch/err" >&2
    return 1
  }
  passed "$(grep -c -v SKIPPED <<<"$said")"
  note "$(grep SKIPPED <<<"$said" | paste -s -d ' ')"
}

stage_fuzz() {
  local said
  said=$(tools/fuzz.sh --build "$asan_build" --seconds "${FUZZ_SECONDS:-60}" 2>"$scratch/err") || {
    echo "$said"
    cat "$scratch/err" >&2
    return 1
  } >&2
  [[ $said != *SKIPPED* ]] || skip "${said#*SKIPPED: }"
  passed "$(grep -c 'executions' <<<"$said")"
  note "$(tail -n 1 <<<"$said")"
}
