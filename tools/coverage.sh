#!/usr/bin/env bash
# Measures which lines and branches of the library the default tests run, with clang's source-based coverage: a table per
# file of engine/ and kernels/ and the totals of both.
#
#   tools/coverage.sh [-B BUILD] [--missing] [--report-only]
#     -B BUILD       its own build tree (default build-coverage); 10 minutes and more on two cores the first time
#     --missing      also lists the lines that no test ran
#     --report-only  builds nothing and runs nothing: reports what the last run measured
#
# MINIMUM (default 95) is the percentage of lines that engine/ and kernels/ must each reach. Counted over the SIMD targets
# that are compiled here: AVX3, AVX2, SSE4 and SCALAR; a line of a kernel counts as run where any of them runs it. JOBS
# says how many compilers and tests at once. What a killed process ran is not counted. Exit status: 0 reached, or SKIPPED
# where clang's tools cannot be had; 1 not reached, or a test failed; 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

build=build-coverage
jobs=${JOBS:-$(nproc)}
minimum=${MINIMUM:-95}
missing=false
report_only=false

die() {
  echo "coverage.sh: $1" >&2
  exit "${2:-1}"
}

while (($# > 0)); do
  case $1 in
    -B)
      (($# > 1)) || die "$1 needs a value" 2
      build=$2
      shift
      ;;
    --missing) missing=true ;;
    --report-only) report_only=true ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "unknown argument '$1'; known are: -B --missing --report-only --help" 2 ;;
  esac
  shift
done

if ! said=$(tools/setup.sh build test coverage 2>&1); then
  echo "coverage.sh: SKIPPED: tools/setup.sh build test coverage: $(tail -n 1 <<<"$said")"
  exit 0
fi
clang=$(command -v clang++)
# The tools of the compiler's own version, which the profiles are for.
version=$("$clang" -dumpversion | cut -d . -f 1)
tool() { command -v "$1-$version" || command -v "$1" || die "no $1 (Debian's package llvm has it)"; }
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

mkdir -p "$build"
build=$(realpath "$build")
profiles=$build/profiles
log=$build/coverage.log
failed=false

if ! $report_only; then
  if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  # Two targets less: they differ from their neighbours in little, and each costs as much as any.
  flags="-fprofile-instr-generate -fcoverage-mapping -DHWY_DISABLED_TARGETS=(HWY_AVX3_DL|HWY_SSSE3)"
  if ! { CXX=$clang cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS="$flags" -DBLOOMLINE_BUILD_BENCH=OFF \
    -DBLOOMLINE_INSTALL=OFF && cmake --build "$build" -j "$jobs"; } >"$log" 2>&1; then
    grep -n -m 20 -E 'error|Error' "$log" >&2 || tail -n 40 "$log" >&2
    die "the build failed; all it said is in $log"
  fi
  rm -rf "$profiles"
  mkdir -p "$profiles"
  # %m: one file per program, which its processes merge what they ran into.
  if ! LLVM_PROFILE_FILE="$profiles/%m.profraw" ctest --test-dir "$build" -j "$jobs" --output-on-failure \
    --no-tests=error >"$build/ctest.log" 2>&1; then
    grep -E 'Failure$|\*\*\*|^The following|^[[:space:]]+[0-9]+ - ' "$build/ctest.log" | tail -n 40 >&2
    failed=true
  fi
  "$profdata" merge -sparse "$profiles"/*.profraw -o "$build/all.profdata" || die "llvm-profdata cannot merge $profiles"
fi
[[ -f $build/all.profdata ]] || die "no $build/all.profdata: nothing was measured yet"

# The library as a whole, and the programs for what is inline in headers.
objects=("$build/lib/libbloomline.so")
for program in "$build"/bin/bloomline "$build"/tests/*_test; do objects+=(-object "$program"); done
"$cov" export -format=lcov -instr-profile="$build/all.profdata" "${objects[@]}" engine kernels >"$build/lcov" \
  2>>"$log" || die "llvm-cov failed: $(tail -n 3 "$log")"

awk -v root="$PWD/" -v minimum="$minimum" -v list="$missing" '
  function percent(hit, all) { return all ? sprintf("%6.1f %%", 100 * hit / all) : "       -" }
  function row(name, lines, lines_hit, branches, branches_hit) {
    printf "%-52s%7d%8s%9d%8s\n", name, lines, percent(lines_hit, lines), branches, percent(branches_hit, branches)
  }
  function flush_range() {
    if (first) ranges = ranges (ranges == "" ? "" : ", ") (first == last ? first : first "-" last)
    first = 0
  }
  BEGIN { printf "%-52s%7s%8s%9s%8s\n", "", "lines", "run", "branches", "run" }
  /^SF:/ { file = substr($0, 4); sub("^" root, "", file); folder = file; sub("/.*", "", folder); ranges = ""; first = 0 }
  /^DA:/ {
    split(substr($0, 4), part, ",")
    if (part[2] != 0) flush_range()
    else if (first) last = part[1]
    else first = last = part[1]
  }
  /^LF:/ { lines = substr($0, 4) }
  /^LH:/ { lines_hit = substr($0, 4) }
  /^BRF:/ { branches = substr($0, 5) }
  /^BRH:/ { branches_hit = substr($0, 5) }
  /^end_of_record/ {
    flush_range()
    row(file, lines, lines_hit, branches, branches_hit)
    if (list == "true" && ranges != "") print "    not run: " ranges
    all[folder] += lines; hit[folder] += lines_hit; all_branches[folder] += branches; hit_branches[folder] += branches_hit
    branches = branches_hit = 0
  }
  END {
    print ""
    status = 0
    for (i = split("engine kernels", folders, " "); i > 0; --i) {
      folder = folders[i]
      row(folder "/", all[folder], hit[folder], all_branches[folder], hit_branches[folder])
      if (!all[folder] || 100 * hit[folder] < minimum * all[folder]) { status = 1; short = short " " folder "/" }
    }
    if (status) print "coverage.sh: FAILED: fewer than " minimum " % of the lines were run in" short
    exit status
  }' "$build/lcov" || failed=true
! $failed || die "FAILED$([[ -f $build/ctest.log ]] && grep -q '^The following tests FAILED' "$build/ctest.log" && echo ': tests failed, see above')"
echo "coverage.sh: ok"
