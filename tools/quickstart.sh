#!/usr/bin/env bash
# The main job on real words, from nothing: installs the packages, builds bloomline, makes a filter of Debian's largest
# English word list, saves it, queries it, and measures it beside std::unordered_set.
#
#   tools/quickstart.sh
#
# Ends with 0 only if every word is found and the false-positive rate is the predicted one.
# BUILD_DIR (default build) says where to build; what it writes is in BUILD_DIR/quickstart.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

case "${1:-}" in
  "") ;;
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *)
    echo "quickstart.sh: unknown argument '$1'; it takes none" >&2
    exit 2
    ;;
esac

build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}
words=/usr/share/dict/american-english-insane
common=/usr/share/dict/american-english
fpr=0.01

fail() {
  echo "quickstart.sh: FAILED: $*" >&2
  exit 1
}

tools/setup.sh build words

out=$build/quickstart
mkdir -p "$out"
echo "Building bloomline in $build (the first time takes a few minutes) ..."
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
if ! { env CXX="${CXX:-g++}" cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release &&
  cmake --build "$build" -j "$jobs" --target bloomline_cli quickstart_compare; } >"$out/build.log" 2>&1; then
  grep -m 5 -E 'error|Error' "$out/build.log" >&2 || true
  fail "the build; all it said is in $out/build.log"
fi

bloomline=$build/bin/bloomline
filter=$out/words.bloom
foreign=$out/foreign.txt
sed 's/$/~/' "$words" >"$foreign" # no word ends in ~

# Shows a command as one would type it, and runs it.
show() {
  printf '\n$ %s\n' "$*"
  "$@"
}
# The number at KEY in what `bloomline query --json` says of the lines of FILE.
ask() {
  "$bloomline" query "$filter" --keys "$2" --json | tr -d ' \n' | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}

echo
echo "1. A filter of $(wc -l <"$words") words that answers wrongly for 1 in 100 foreign strings, saved to a file:"
show "$bloomline" build --keys "$words" --fpr "$fpr" --out "$filter"

echo
echo "2. Are the $(wc -l <"$common") words of a smaller list in it? All of them must be \"maybe present\":"
show "$bloomline" query "$filter" --keys "$common"

echo
echo "3. Strings that are not words (each word with a ~ behind it): all but about 1 % are certainly absent:"
show "$bloomline" query "$filter" --keys "$foreign"

for list in "$words" "$common"; do
  absent=$(ask absent "$list")
  [[ $absent == 0 ]] || fail "'${absent:-no number}' words of $list were not found in the filter made of them"
done
maybe=$(ask maybe "$foreign")
[[ ${maybe:-0} -gt 0 ]] || fail "no false positive at all among $(wc -l <"$foreign") foreign strings"

echo
echo "4. What that costs, beside a hash set that knows the words exactly:"
echo
"$build/bin/quickstart_compare" "$words" "$filter" || fail "see above"

echo
echo "Passed: every word was found, and the false-positive rate is the predicted one."
echo "What a saved filter holds: $bloomline info $filter"
