#!/usr/bin/env bash
# Holds the files of different processors and compilers against each other. The command line program writes a set of
# filters natively (every layout, byte-string and integer keys, counters under every overflow policy, a merge, sizes from
# --fpr), and again as each of: older x86 processors, emulated by qemu-x86_64; ARM processors, emulated by qemu-aarch64;
# the clang build. Every file must be the same byte for byte; each side then reads the other's files and must give the
# same answers.
#
#   tools/cross_files.sh [NAME...]
#     NAME  Westmere, qemu64, cortex-a72, max, clang; all of them by default
#
# Builds nothing: BUILD_DIR (default build), CLANG_BUILD_DIR (default build-clang) and AARCH64_BUILD_DIR (default
# build-aarch64, which tools/aarch64.sh makes) are taken as they are. One line per processor; what is not there is
# SKIPPED. Exit status: 0 equal or skipped, 1 different, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

build=${BUILD_DIR:-build}
clang_build=${CLANG_BUILD_DIR:-build-clang}
arm_build=${AARCH64_BUILD_DIR:-build-aarch64}
all=(Westmere qemu64 cortex-a72 max clang)
names=()
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    Westmere | qemu64 | cortex-a72 | max | clang) names+=("$argument") ;;
    *)
      echo "cross_files.sh: unknown argument '$argument'; known are: --help ${all[*]}" >&2
      exit 2
      ;;
  esac
done
((${#names[@]})) || names=("${all[@]}")

fail() {
  echo "cross_files.sh: FAILED: $*" >&2
  exit 1
}

native=$(realpath -m "$build")/bin/bloomline
if [[ ! -x $native ]]; then
  echo "SKIPPED files across processors: no $build/bin/bloomline to compare with"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The keys. Lines with repeats (for counters beyond their maximum), an empty one, a CR, a last one without an LF; and as
# integers any text whose length is a multiple of 8.
{
  seq 1 6000
  printf '\nkey\r\n'
  for _ in {1..40}; do seq 1 7; done
  printf 'the last'
} >"$work/lines"
{ seq 1 3; seq 5000 7000; } >"$work/more_lines"
seq 4000 9000 >"$work/probe_lines"
seq 100000 105000 | head -c 32000 >"$work/integers"
seq 103000 108000 | head -c 32000 >"$work/probe_integers"

# run COMMAND...: says what failed where it does.
run() {
  local log=$work/log
  "$@" >"$log" 2>&1 || fail "$*: $(tail -n 3 "$log")"
}

# write_set FOLDER COMMAND...
write_set() {
  local out=$1 layout k policy fpr
  shift
  mkdir -p "$out"
  while read -r layout k; do
    run "$@" build --keys "$work/lines" --bits-per-key 9 --layout "$layout" --k "$k" --threads 1 \
      --out "$out/lines.${layout}k$k"
    run "$@" build --keys "$work/integers" --format u64le --bits-per-key 11.5 --layout "$layout" --k "$k" --seed "$k" \
      --threads 2 --out "$out/integers.${layout}k$k"
  done <<'LAYOUTS'
word64 5
word64 16
sector512z2 6
sector512z2 16
sector512z4 8
sector512z4 12
split512 8
sector512z8 16
line512 1
line512 7
line512 16
split256 8
LAYOUTS
  for fpr in 0.3 0.05 0.01 0.001 1e-5; do
    run "$@" build --keys "$work/lines" --fpr "$fpr" --out "$out/lines.fpr$fpr"
    run "$@" build --keys "$work/integers" --format u64le --fpr "$fpr" --out "$out/integers.fpr$fpr"
  done
  for layout in counting4 counting8; do
    for policy in saturate reject spill; do
      run "$@" build --keys "$work/lines" --bits-per-key 60 --layout "$layout" --overflow "$policy" \
        --out "$out/lines.$layout.$policy"
      run "$@" add "$out/lines.$layout.$policy" --keys "$work/lines"
      run "$@" remove "$out/lines.$layout.$policy" --keys "$work/more_lines"
    done
  done
  run "$@" merge "$out/lines.counting4.spill" "$out/lines.counting4.spill" --out "$out/lines.counting4.merged"
  run "$@" merge "$out/integers.split512k8" "$out/integers.split512k8" --out "$out/integers.merged"
}

# answers FOLDER OUT COMMAND...: every answer to the probe keys.
answers() {
  local set=$1 out=$2 path name
  shift 2
  mkdir -p "$out"
  for path in "$set"/*; do
    name=$(basename "$path")
    run "$@" query "$path" --keys "$work/probe_${name%%.*}" --output bitmap --lines-to "$out/$name.bitmap"
    [[ $name != *counting* ]] ||
      run "$@" count "$path" --keys "$work/lines" --output lines --lines-to "$out/$name.counts"
  done
}

# same ONE OTHER WHAT NAME
same() {
  local differences
  differences=$(diff -rq "$1" "$2" 2>&1) || fail "$4: $3 differ: ${differences//$work\//}"
}

write_set "$work/native" "$native"
answers "$work/native" "$work/native_answers" "$native"
files=$(find "$work/native" -type f | wc -l)
# A comparison of nothing, or of answers that are all alike, would be none.
((files == 42)) || fail "42 files were to be written natively, and there are $files"
[[ $(md5sum "$work"/native_answers/* | cut -d ' ' -f 1 | sort -u | wc -l) -gt 20 ]] ||
  fail "the answers of the native files are all alike"
grep -q -E '^(1[6-9]|[2-9][0-9]|[0-9]{3,})'$'\t' "$work/native_answers/lines.counting4.spill.counts" ||
  fail "no counter of the spill file went beyond 15"

# compare NAME COMMAND...
compare() {
  local name=$1 began=$SECONDS chosen
  shift
  chosen=$("$@" targets --json 2>"$work/log" | tr -d ' \n' | sed -n 's/.*"chosen":"\([^"]*\)".*/\1/p') || true
  [[ -n $chosen ]] || fail "$name: bloomline targets: $(tail -n 1 "$work/log")"
  rm -rf "$work/other" "$work/answers"
  write_set "$work/other" "$@"
  same "$work/native" "$work/other" "the files" "$name"
  answers "$work/native" "$work/answers" "$@"
  same "$work/native_answers" "$work/answers" "answers from native files" "$name"
  rm -rf "$work/answers"
  answers "$work/other" "$work/answers" "$native"
  same "$work/native_answers" "$work/answers" "native answers from its files" "$name"
  printf '%-10s %-8s %d files equal, and %d answers of each side on the files of the other, %d s\n' "$name" "$chosen" \
    "$files" "$(find "$work/native_answers" -type f | wc -l)" $((SECONDS - began))
}

# skip NAME WHY
skip() { echo "SKIPPED files of $1: $2"; }

x86() { # NAME
  if [[ $(uname -m) != x86_64 ]]; then
    skip "$1" "this machine is $(uname -m)"
  elif ! command -v qemu-x86_64 >/dev/null; then
    skip "$1" "no qemu-x86_64 (tools/setup.sh emulators)"
  else
    compare "$1" qemu-x86_64 -cpu "$1" "$native"
  fi
}

arm() { # NAME
  local program sysroot libs=/usr/aarch64-linux-gnu
  program=$(realpath -m "$arm_build")/bin/bloomline
  if [[ ! -x $program ]]; then
    skip "$1" "no $arm_build/bin/bloomline (tools/aarch64.sh builds it)"
  elif ! command -v qemu-aarch64 >/dev/null; then
    skip "$1" "no qemu-aarch64 (tools/setup.sh aarch64)"
  else
    sysroot=$(sed -n 's/^BLOOMLINE_SYSROOT:[A-Z]*=//p' "$arm_build/CMakeCache.txt")
    compare "$1" qemu-aarch64 -L "$libs" -E \
      "LD_LIBRARY_PATH=$libs/lib:$sysroot/usr/lib/aarch64-linux-gnu:$sysroot/lib/aarch64-linux-gnu" -cpu "$1" "$program"
  fi
}

for name in "${names[@]}"; do
  case $name in
    Westmere | qemu64) x86 "$name" ;;
    cortex-a72 | max) arm "$name" ;;
    clang)
      if [[ -x $clang_build/bin/bloomline ]]; then
        compare clang "$(realpath "$clang_build")/bin/bloomline"
      else
        skip clang "no $clang_build/bin/bloomline"
      fi
      ;;
  esac
done
