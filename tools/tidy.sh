#!/usr/bin/env bash
# Runs clang-tidy over engine/ and kernels/ (or the files named), which are to be clean. About ten minutes on one core;
# needs clang-tidy 14 or newer.
#
#   tools/tidy.sh [FILE.cc...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || {
  echo "tidy.sh: no clang-tidy; Debian's package clang-tidy has it" >&2
  exit 2
}
files=("$@")
((${#files[@]})) || files=(engine/*.cc kernels/*.cc)
found=$(mktemp)
trap 'rm -f "$found"' EXIT
for file in "${files[@]}"; do
  # The targets that Highway compiles again and again are one and the same source: one of them is enough.
  "$tidy" --quiet "$file" -- -std=c++20 -I. -Iengine/include -DHWY_COMPILE_ONLY_STATIC -mavx2 -mbmi -mbmi2 -mfma -mf16c \
    -maes -mpclmul 2>/dev/null >>"$found" || true
done
grep -E -A 3 '(warning|error):' "$found" | grep -v '^--$' || true
count=$(grep -c -E '(warning|error):' "$found" || true)
echo "tidy.sh: $count findings in ${#files[@]} files"
((count == 0))
