#!/usr/bin/env bash
# Sets up, builds and tests everything on this machine; needs no terminal and reads nothing. One line per stage.
#
#   tools/test.sh [--quick | --all] [--stage NAME]... [--require "NAME..."]
#     --all       the stages that take longest too: asan, fuzz, aarch64, cross_files
#     --quick     build with g++ and all tests on this processor's targets, nothing emulated: under five minutes
#     --stage     only this stage (and may be given again); build trees that earlier runs made are used
#     --require   stages that fail where they would be skipped ("all": every one). CI gives the list.
#     --list      the stages and what they do
#
# Environment: BUILD_DIR (default build), CLANG_BUILD_DIR (build-clang), ASAN_BUILD_DIR (build-asan), TSAN_BUILD_DIR
# (build-tsan), AARCH64_BUILD_DIR (build-aarch64); JOBS, how many compilers at once; FUZZ_SECONDS, per fuzzer (default 60).
# The last line counts the tests. The large runs are apart: ctest --test-dir build -C Large -L large
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

die() {
  echo "test.sh: $1" >&2
  exit 2
}

. tools/test/common.sh
. tools/test/stages.sh

stages=()
required=
while (($# > 0)); do
  case $1 in
    --quick) stages=("${quick_stages[@]}") ;;
    --all) stages=("${all_stages[@]}") ;;
    --stage | --require)
      (($# > 1)) || die "$1 needs a value"
      if [[ $1 == --stage ]]; then
        known_stage "$2" || die "unknown stage '$2'; known are: ${all_stages[*]}"
        stages+=("$2")
      else
        for name in $2; do
          [[ $name == all ]] || known_stage "$name" || die "unknown stage '$name'; known are: all ${all_stages[*]}"
        done
        required+=" $2 "
      fi
      shift
      ;;
    --list)
      for name in "${all_stages[@]}"; do printf '%-13s %s\n' "$name" "$(describe_stage "$name")"; done
      exit 0
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "unknown argument '$1'; known are: --quick --all --stage --require --list --help" ;;
  esac
  shift
done
((${#stages[@]})) || stages=("${default_stages[@]}")

for name in "${stages[@]}"; do run_stage "$name"; done
printf '%-13s %s  ' "all stages" "$(clock $SECONDS)"
summary
