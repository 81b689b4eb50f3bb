#!/usr/bin/env bash
# Compiles the first C++ block of the README, as it stands, against a build tree, and runs it.
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
read -ra flags <<<"${CXXFLAGS:-}"
libraries=(-lbloomline)
[[ -e $build/lib/libbloomline.so ]] || libraries+=(-lhwy -lhwloc -lxxhash -pthread)
"${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror "${flags[@]}" -I "$source/engine/include" "$work/readme.cc" \
  -o "$work/readme" -L "$build/lib" "${libraries[@]}" -Wl,-rpath,"$build/lib"
cd "$work" # whatever files it writes
./readme
echo "readme_code: ok"
