#!/usr/bin/env bash
# Runs the fuzzers of tests/fuzz (libFuzzer, clang, AddressSanitizer and UBSan), from the corpora in tests/fuzz/corpus on.
#
#   tools/fuzz.sh [--seconds N] [--build DIR] [--corpus-only] [--merge] [FUZZER...]
#     --seconds N    per fuzzer (default 60); two run at a time
#     --build DIR    build tree (default build-asan: the preset asan)
#     --corpus-only  run what is checked in, once
#     --merge        afterwards take new inputs that reach new code into tests/fuzz/corpus
#     FUZZER         filter, counting, snapshot, cli; all of them by default
#
# One line per fuzzer: executions, executions per second, places in the code reached. New inputs stay in DIR/corpus, and the
# next run begins with them. An input that breaks something fails the run, is kept, and is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

all=(filter counting snapshot cli)
fuzzers=()
seconds=60
build=build-asan
corpus_only=false
merge=false

die() {
  echo "fuzz.sh: $1" >&2
  exit "${2:-1}"
}

while (($# > 0)); do
  case $1 in
    --seconds | --build)
      (($# > 1)) || die "$1 needs a value" 2
      if [[ $1 == --build ]]; then
        build=$2
      else
        [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || die "--seconds '$2': must be 1 to 999999" 2
        seconds=$2
      fi
      shift
      ;;
    --corpus-only) corpus_only=true ;;
    --merge) merge=true ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    filter | counting | snapshot | cli) fuzzers+=("$1") ;;
    *) die "unknown argument '$1'; known are: --seconds --build --corpus-only --merge --help ${all[*]}" 2 ;;
  esac
  shift
done
((${#fuzzers[@]})) || fuzzers=("${all[@]}")

clang=$(command -v clang++-14 || command -v clang++) || {
  echo "fuzz.sh: SKIPPED: no clang++; tools/setup.sh test installs it"
  exit 0
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [[ ! -e $build/CMakeCache.txt ]]; then
  env CXX="$clang" cmake --preset asan -B "$build" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "could not configure $build"
  }
fi
cmake --build "$build" -j "$(nproc)" --target "${fuzzers[@]/#/fuzz_}" >"$log" 2>&1 || {
  tail -n 40 "$log" >&2
  die "could not build the fuzzers"
}
build=$(realpath "$build")

# One fuzzer; its output goes to $build/fuzz-NAME.log.
run() {
  local name=$1 found=$build/corpus/$1 checked_in=$PWD/tests/fuzz/corpus/$1 limit=()
  mkdir -p "$found" "$checked_in"
  if $corpus_only; then limit=(-runs=0); else limit=(-max_total_time="$seconds"); fi
  # Snapshots are a header of 4 KiB and what is behind it.
  [[ $name != snapshot ]] || limit+=(-max_len=8192)
  "$build/tests/fuzz/fuzz_$name" "${limit[@]}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/fuzz-$name-" "$found" "$checked_in" >"$build/fuzz-$name.log" 2>&1
}

status=0
for ((i = 0; i < ${#fuzzers[@]}; i += 2)); do
  pids=() names=("${fuzzers[@]:i:2}")
  for name in "${names[@]}"; do
    run "$name" &
    pids+=($!)
  done
  for j in "${!pids[@]}"; do
    name=${names[j]} out=$build/fuzz-${names[j]}.log ended=0
    wait "${pids[j]}" || ended=$?
    number() { sed -n "s/^stat::$1: *\([0-9]*\)$/\1/p" "$out" | tail -n 1; }
    reached=$(grep -o -E 'cov: [0-9]+' "$out" | tail -n 1 | tr -dc 0-9 || true)
    if ((ended == 0)); then
      printf '%-9s %10s executions, %6s per second, %5s places reached\n' "$name" "$(number number_of_executed_units)" \
        "$(number average_exec_per_sec)" "${reached:-?}"
    else
      status=1
      grep -E -m 5 'does not hold|ERROR|SUMMARY|runtime error' "$out" >&2 || tail -n 20 "$out" >&2
      echo "fuzz.sh: FAILED: $name; the input: $(sed -n 's/.*Test unit written to //p' "$out" | tail -n 1); all of it: $out" >&2
    fi
  done
done
if $merge && ((status == 0)); then
  for name in "${fuzzers[@]}"; do
    old=$PWD/tests/fuzz/corpus/$name new=$build/corpus-merged-$name
    rm -rf "$new"
    mkdir -p "$new"
    "$build/tests/fuzz/fuzz_$name" -merge=1 "$new" "$old" "$build/corpus/$name" >"$build/fuzz-$name.log" 2>&1
    rm -f "$old"/*
    # The smallest hundred: enough to begin from.
    find "$new" -type f -printf '%s %f\n' | sort -n | head -n 100 | while read -r _ file; do cp "$new/$file" "$old/"; done
  done
fi
exit "$status"
