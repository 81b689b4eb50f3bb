#!/usr/bin/env bash
# Compiles the first C++ block of the README, as it stands, against a build tree, and runs it; then the same with the
# later blocks at the end of its main function, where they find its variables.
#
#   tests/readme_code.sh README.md BUILD_DIR
set -euo pipefail

readme=$(realpath "$1")
build=$(realpath "$2")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```cpp[ \r]*$/ && !seen { inside = 1; seen = 1; next } /^```/ { inside = 0 } inside' "$readme" >"$work/readme.cc"
if ! grep -q 'int main' "$work/readme.cc"; then
  echo "the first \`\`\`cpp block of $readme is missing or has no main function" >&2
  exit 1
fi
# The last line of the first block closes main.
sed '$d' "$work/readme.cc" >"$work/all.cc"
awk '/^```cpp[ \r]*$/ { ++seen; if (seen > 1) { inside = 1; print "{" } next }
     /^```/ { if (inside) print "}"; inside = 0 } inside' "$readme" >>"$work/all.cc"
echo "}" >>"$work/all.cc"
read -ra flags <<<"${CXXFLAGS:-}"
libraries=(-lbloomline)
[[ -e $build/lib/libbloomline.so ]] || libraries+=(-lhwy -lhwloc -lxxhash -pthread)
cd "$work" # whatever files the code writes
for code in readme all; do
  "${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror "${flags[@]}" -I "$source/engine/include" "$code.cc" \
    -o "$code" -L "$build/lib" "${libraries[@]}" -Wl,-rpath,"$build/lib"
  "./$code"
done
echo "readme_code: ok"
