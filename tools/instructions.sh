#!/usr/bin/env bash
# Counts the instructions per key of every kernel, without noise, and holds them against bench/instructions/counts.txt.
#
#   tools/instructions.sh [-B BUILD] [-p PROGRAM]            checks; a row that takes 5 % more fails
#   tools/instructions.sh [-B BUILD] [-p PROGRAM] --update   writes the file anew
#
# Builds bloomline_instructions in BUILD (default: build), or takes PROGRAM as it is, and runs it under callgrind
# (tools/setup.sh gate installs it) on the targets that Valgrind runs: AVX2, SSE4, SSSE3, SCALAR; not AVX-512, whose
# kernels are compared by time (tools/bench_compare.sh). Under half a minute.
# The counts are those of a compiler: with another major version, other flags or another Highway than the file's, nothing
# is compared, and the output says SKIPPED. Exit status: 0 kept, or skipped; 1 more instructions, or rows that are missing
# on either side; 2 usage.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
counts=$root/bench/instructions/counts.txt
build=$root/build
program=
update=false
tolerance=5 # per cent

die() {
  echo "instructions.sh: $1" >&2
  exit "${2:-1}"
}

while (($# > 0)); do
  case $1 in
    -B | -p)
      (($# > 1)) || die "$1 needs a value" 2
      if [[ $1 == -B ]]; then build=$2; else program=$2; fi
      shift
      ;;
    --update) update=true ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "unknown argument '$1'; known are: -B -p --update --help" 2 ;;
  esac
  shift
done

if [[ $(uname -m) != x86_64 ]]; then
  echo "instructions.sh: SKIPPED: counted on x86-64 only, this is $(uname -m)"
  exit 0
fi
command -v valgrind >/dev/null || die "no valgrind. Install it: tools/setup.sh gate"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -z $program ]]; then
  [[ -f $build/CMakeCache.txt ]] || die "no build in $build. Configure it: cmake -S $root -B $build"
  # The configuration is renewed: it may be older than valgrind's installation.
  if ! cmake "$build" >"$work/build.log" 2>&1 ||
    ! cmake --build "$build" --target bloomline_instructions >>"$work/build.log" 2>&1; then
    tail -n 20 "$work/build.log" >&2
    die "bloomline_instructions does not build in $build; the last lines are above"
  fi
  program=$build/bin/bloomline_instructions
fi
[[ -x $program ]] || die "$program is not a program" 2
"$program" --about >"$work/about" || die "$program --about failed"

# What makes counts comparable: lines "compiler: g++ 12", "flags: ...", "highway: 1.0".
comparable() { sed -n -E 's/^(# )?(compiler: [^0-9]*[0-9]+).*/\2/p; s/^(# )?(flags: .*|highway: .*)/\2/p' "$1"; }

if ! $update; then
  [[ -f $counts ]] || die "no $counts. Write it: tools/instructions.sh --update"
  if ! diff <(comparable "$counts") <(comparable "$work/about") >"$work/differs"; then
    echo "instructions.sh: SKIPPED: nothing was compared. bench/instructions/counts.txt (<) is of another build than" \
      "$program (>):"
    grep '^[<>]' "$work/differs"
    exit 0
  fi
fi

if ! valgrind --tool=callgrind --instr-atstart=no --combine-dumps=yes --callgrind-out-file="$work/callgrind.out" \
  --log-file="$work/valgrind.log" "$program" >"$work/out" 2>&1; then
  tail -n 20 "$work/valgrind.log" "$work/out" >&2
  die "$program failed under callgrind"
fi

# Dumps are labelled "<row> <keys>"; of a row, 2 N keys less N keys, per key.
awk '
  /^desc: Trigger: Client Request: / { row = $5; keys = $6; next }
  /^totals: / && row != "" {
    if (row in first) printf "%s %.2f\n", row, ($2 - first[row]) / (keys - first_keys[row])
    else { first[row] = $2; first_keys[row] = keys }
    row = ""
  }' "$work/callgrind.out" >"$work/measured"
expected=$("$program" --list | wc -l)
measured=$(wc -l <"$work/measured")
((measured == expected && measured > 0)) || die "counted $measured of $expected rows; callgrind's format may have changed"

if $update; then
  {
    echo "# Instructions per key, counted by callgrind. Written by tools/instructions.sh --update, which says more."
    sed 's/^/# /' "$work/about"
    cat "$work/measured"
  } >"$work/counts"
  cp "$work/counts" "$counts"
  echo "instructions.sh: wrote $measured rows to bench/instructions/counts.txt"
  exit 0
fi

ended=0
awk -v tolerance="$tolerance" '
  FNR == NR { if ($0 !~ /^#/ && NF == 2) old[$1] = $2; next }
  {
    new[$1] = $2
    target = $1
    sub(/.*target:/, "", target)
    runs[target] = 1
    if (!($1 in old)) { unknown = unknown "  " $1 "\n"; next }
    ++compared
    change = ($2 / old[$1] - 1) * 100
    if (change >= tolerance) { ++more; verdict = "MORE" } else verdict = change <= -tolerance ? "fewer" : ""
    if (verdict == "fewer") ++fewer
    if (change >= 1 || change <= -1) table = table sprintf("%-52s%9.2f%9.2f%+8.1f %%  %s\n", $1, old[$1], $2, change, verdict)
  }
  END {
    for (row in old) if (!(row in new)) {
      target = row
      sub(/.*target:/, "", target)
      if (target in runs) gone = gone "  " row "\n"; else ++not_here[target]
    }
    if (table != "") printf "%-52s%9s%9s%10s\n%s", "instructions per key", "file", "now", "change", table
    if (unknown != "") printf "not in the file:\n%s", unknown
    if (gone != "") printf "in the file, but not counted any more:\n%s", gone
    for (target in not_here) printf "SKIPPED %s: this CPU does not run it (%d rows)\n", target, not_here[target]
    printf "%d rows compared, %d with %g %% more instructions, %d with as many fewer\n", compared, more, tolerance, fewer
    if (more || unknown != "" || gone != "" || !compared) exit 1
  }' "$counts" "$work/measured" || ended=$?
if ((ended != 0)); then
  echo "instructions.sh: FAILED. If the change is meant, tools/instructions.sh --update writes the file anew."
  exit 1
fi
echo "instructions.sh: ok"
