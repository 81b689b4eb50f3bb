#!/usr/bin/env bash
# Measures lookups at every filter size from 32 KiB to 1 GiB and draws docs/lookup_by_size.svg.
#
#   tools/bench_sizes.sh [-B BUILD] [-o OUT.svg] [-j RESULT.json]
#
# BUILD (default: build) must hold bin/bloomline_bench. About four minutes and 1.2 GB of memory; wants a quiet machine.
# The results are kept only where -j says so.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
out=$root/docs/lookup_by_size.svg
json=

die() {
  echo "bench_sizes.sh: $1" >&2
  exit "${2:-1}"
}

while getopts B:o:j:h option; do
  case $option in
    B) build=$OPTARG ;;
    o) out=$OPTARG ;;
    j) json=$OPTARG ;;
    h)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "usage: bench_sizes.sh [-B BUILD] [-o OUT.svg] [-j RESULT.json]" 2 ;;
  esac
done
shift $((OPTIND - 1))
(($# == 0)) || die "unknown argument '$1'" 2

bench=$build/bin/bloomline_bench
[[ -x $bench ]] || die "no $bench. Build it: cmake -S $root -B $build && cmake --build $build --target bloomline_bench"
command -v python3 >/dev/null || die "python3 is needed to draw"

if [[ -z $json ]]; then
  json=$(mktemp)
  trap 'rm -f "$json"' EXIT
fi
"$bench" --benchmark_filter='/sweep$' --benchmark_repetitions=5 --benchmark_min_time=0.1 --benchmark_out="$json" \
  --benchmark_out_format=json
mkdir -p "$(dirname "$out")"
python3 "$root/tools/bench_report.py" --plot "$out" "$json"
echo "bench_sizes.sh: drew $out"
