#!/usr/bin/env bash
# Measures this machine: installs what is needed, builds, runs the benchmark suite, writes the result and its report.
#
#   tools/bench.sh [--quick | --full] [OPTION...]
#   tools/bench.sh --from RESULT.json [OPTION...]    the report of a result that is there already
#     --quick          two to three minutes, filters up to 128 MiB (the default)
#     --full           under half an hour, filters of 512 MiB and 1 GiB too; 6 GiB of memory
#     -B BUILD         build tree (default: build); its bloomline_bench is built if it is not up to date
#     --machine NAME   folder of the result under results/ (default: from the CPU's name)
#     --results DIR    in place of results/
#     --report FILE    in place of BENCHMARKS.md; must hold the lines <!-- bench:begin --> and <!-- bench:end -->
#     --plots DIR      in place of docs/benchmarks
#
# Writes results/<machine>/<date>.json (tools/bench_compare.sh compares two), the plots, and BENCHMARKS.md between its
# markers. The installation and the build come on top of the times. A machine with other work gives noise: leave it alone
# meanwhile. Exit status: 0 done; 1 a row failed its checks, or could not be built; 2 usage or bad input.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
from=
arguments=()

die() {
  echo "bench.sh: $1" >&2
  exit "${2:-1}"
}

while (($# > 0)); do
  case $1 in
    --quick | --full) arguments+=(--mode "${1#--}") ;;
    -B | --from | --machine | --results | --report | --plots)
      (($# > 1)) || die "$1 needs a value" 2
      case $1 in
        -B) build=$2 ;;
        --from)
          from=$2
          arguments+=("$1" "$2")
          ;;
        *) arguments+=("$1" "$2") ;;
      esac
      shift
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "unknown argument '$1'; -h lists what there is" 2 ;;
  esac
  shift
done

# A Python that can draw; the distribution's own has what the distribution's packages brought.
find_python() {
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import matplotlib' >/dev/null 2>&1 && return
  done
  return 1
}

if [[ -n $from ]]; then
  find_python || "$root/tools/setup.sh" plots
else
  "$root/tools/setup.sh" build bench plots || echo "bench.sh: going on with what there is" >&2
  [[ -e $build/CMakeCache.txt ]] ||
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBLOOMLINE_BUILD_TESTS=OFF >/dev/null
  echo "bench.sh: building $build/bin/bloomline_bench (minutes, the first time)"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --build "$build" -j "$(nproc)" --target bloomline_bench >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "could not build bloomline_bench; the last lines are above"
  fi
fi
find_python || die "no python3 with matplotlib; on Debian, tools/setup.sh plots installs it (python3-matplotlib)"
"$python" "$root/tools/bench/main.py" --root "$root" --program "$build/bin/bloomline_bench" "${arguments[@]}"
