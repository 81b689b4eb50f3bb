#!/usr/bin/env bash
# Is NEW slower than OLD? Compares two builds, or two results, of bloomline_bench.
#
#   tools/bench_compare.sh OLD NEW [--filter REGEX] [--threshold 5%] [--rounds N] [--json]
#   tools/bench_compare.sh --record OUT.json BUILD [--filter REGEX] [--rounds N]
#
# OLD and NEW are build directories (or bloomline_bench programs), which are run in turn, N rounds (default 10) of
# A B B A ...; about a minute. Or they are JSON files that --record wrote (N processes of one build), of one machine or
# of two. Files that bloomline_bench wrote itself, with eight repetitions or more of each row, are compared too, but are
# no ground for a regression: one process can be a quarter slower than the next.
#   --filter     the rows; default: lookup_batch, lookup_one, insert_batch and count_* of all layouts at 1MiB
#   --threshold  how much slower is a regression (default 5%)
#   --json       one JSON object on standard output in place of the table
# Compared are ratios to the limits (limit/hash_touch of the row's size, measured in the same run); of builds also the
# limits' own times. A regression is a row whose ratio of new to old is beyond the threshold in the whole bootstrap
# interval and in the ratio of the fastest measurements, with the number of rows taken into account; of builds, it must
# then be so in a second, longer measurement. docs/benchmark_ci.md has the reasons, and sample CI jobs.
# Exit status: 0 no regression; 1 a regression, or a row of NEW that fails its checks; 2 usage, or nothing to compare.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
  esac
done
if ! command -v python3 >/dev/null; then
  echo "bench_compare.sh: python3 is needed" >&2
  exit 2
fi
exec python3 "$root/tools/bench_compare.py" "$@" </dev/null
