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
# that are compiled here: a line of a kernel counts as run where any of them runs it. JOBS says how many compilers and
# tests at once. What a killed process ran is not counted. Exit status: 0 reached, or SKIPPED where clang's tools cannot
# be had; 1 not reached, or a test failed; 2 usage.
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
  flags="-fprofile-instr-generate -fcoverage-mapping"
  if ! { CXX=$clang cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS="$flags" -DBLOOMLINE_BUILD_BENCH=OFF \
    -DBLOOMLINE_INSTALL=OFF && cmake --build "$build" -j "$jobs"; } >"$log" 2>&1; then
    grep -n -m 20 -E 'error|Error' "$log" >&2 || tail -n 40 "$log" >&2
    die "the build failed; all it said is in $log"
  fi
  rm -rf "$profiles"
  mkdir -p "$profiles"
  # %m: one file per program, which its processes merge what they ran into. Without the tests of the command line: they
  # look at all that the program writes and at where it may, and the profile is written, too.
  if ! LLVM_PROFILE_FILE="$profiles/%m.profraw" ctest --test-dir "$build" -j "$jobs" -E '^Cli' --output-on-failure \
    --no-tests=error >"$build/ctest.log" 2>&1; then
    grep -E 'Failure$|\*\*\*Failed|^[[:space:]]+[0-9]+ - .*\((Failed|Timeout|SEGFAULT|.*aborted)' "$build/ctest.log" |
      tail -n 40 >&2
    echo "coverage.sh: FAILED: tests failed, those above; more in $build/ctest.log" >&2
    failed=true
  fi
  "$profdata" merge -sparse "$profiles"/*.profraw -o "$build/all.profdata" || die "llvm-profdata cannot merge $profiles"
fi
[[ -f $build/all.profdata ]] || die "no $build/all.profdata: nothing was measured yet"

# The library as a whole, and the programs for what is inline in headers.
objects=("$build/lib/libbloomline.so")
for program in "$build"/bin/bloomline "$build"/tests/*_test; do objects+=(-object "$program"); done
"$cov" export -format=lcov -instr-profile="$build/all.profdata" -ignore-filename-regex='^/usr/' \
  "${objects[@]}" >"$build/lcov" 2>>"$log" || die "llvm-cov failed: $(tail -n 3 "$log")"

# A header that is found in two ways has two records, which are one here.
awk -v root="$PWD/" -v minimum="$minimum" -v list="$missing" '
  function percent(hit, all) { return all ? sprintf("%6.1f %%", 100 * hit / all) : "       -" }
  function row(name, lines, lines_hit, branches, branches_hit) {
    printf "%-56s%7d%9s%9d%9s\n", name, lines, percent(lines_hit, lines), branches, percent(branches_hit, branches)
  }
  function add_range(first, last) { ranges = ranges (ranges == "" ? "" : ", ") (first == last ? first : first "-" last) }
  /^SF:/ {
    file = substr($0, 4)
    while (sub(/[^\/]+\/\.\.\//, "", file)) continue
    if (index(file, root) == 1) file = substr(file, length(root) + 1)
    folder = file
    sub("/.*", "", folder)
    ours = folder == "engine" || folder == "kernels"
    if (ours && !(file in last_line)) { files[++count] = file; folder_of[file] = folder; last_line[file] = 0 }
  }
  ours && /^DA:/ {
    split(substr($0, 4), part, ",")
    if (part[2] > line_runs[file, part[1]] + 0) line_runs[file, part[1]] = part[2]
    else line_runs[file, part[1]] += 0
    if (part[1] + 0 > last_line[file]) last_line[file] = part[1] + 0
  }
  # Of the instances of a template the one with the most branches run counts.
  ours && /^BRF:/ { value = substr($0, 5) + 0; if (value > all_of[file] + 0) all_of[file] = value }
  ours && /^BRH:/ { value = substr($0, 5) + 0; if (value > run_of[file] + 0) run_of[file] = value }
  END {
    printf "%-56s%7s%9s%9s%9s\n", "", "lines", "run", "branches", "run"
    for (f = 1; f <= count; ++f) {
      file = files[f]; folder = folder_of[file]
      lines = lines_hit = first = 0
      ranges = ""
      for (line = 1; line <= last_line[file]; ++line) {
        if (!((file, line) in line_runs)) continue
        ++lines
        if (line_runs[file, line] > 0) {
          ++lines_hit
          if (first) add_range(first, last)
          first = 0
        } else {
          if (!first) first = line
          last = line
        }
      }
      if (first) add_range(first, last)
      branches = all_of[file] + 0
      branches_hit = run_of[file] + 0
      row(file, lines, lines_hit, branches, branches_hit)
      if (list == "true" && ranges != "") print "    not run: " ranges
      all[folder] += lines; hit[folder] += lines_hit; all_branches[folder] += branches; hit_branches[folder] += branches_hit
    }
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
if $failed; then exit 1; fi
echo "coverage.sh: ok"
