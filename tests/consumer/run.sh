#!/usr/bin/env bash
# Installs a build tree into a temporary prefix, moves that, and builds and runs small programs against it, with the
# build's compiler and with the other of g++ and clang++ where it is there: by CMake's find_package and by pkg-config,
# shared and static, with and without exceptions. Looks at what the shared library exports. Then a program of parts for
# different processors (two_targets.cc), run natively and on old processors under qemu.
#
#   tests/consumer/run.sh BUILD_DIR
#
# CXX is the build's compiler, CMAKE_COMMAND the cmake. What cannot be had here is SKIPPED.
set -euo pipefail

case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cmake=${CMAKE_COMMAND:-cmake}
cxx=${CXX:-c++}
version=${VERSION:-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { printf -- '-- %2d s  %s\n' "$SECONDS" "$*"; }
fail() {
  echo "$*" >&2
  exit 1
}

# run COMMAND...: with a file to write and the version as arguments; says which one it was when it fails.
run() {
  local status=0
  "$@" "$work/filter.bloom" "$version" || status=$?
  ((status == 0)) || fail "$* ended with $status; see the return statements of its source"
}

# Several commands at once: later COMMAND..., later COMMAND..., and now.
pids=() commands=()
later() {
  "$@" >"$work/log.${#pids[@]}" 2>&1 &
  pids+=($!) commands+=("$*")
  ((${#pids[@]} < 2)) || now # two at once, as many as the smallest machine has processors
}
now() {
  local i
  for i in "${!pids[@]}"; do
    wait "${pids[i]}" || fail "failed: ${commands[i]}"$'\n'"$(cat "$work/log.$i")"
  done
  pids=() commands=()
}

# The build's compiler, and the other one.
compilers=("$cxx")
if [[ $("$cxx" --version) == *clang* ]]; then
  other=$(command -v g++ || true) missing=g++
else
  other=$(command -v clang++ || command -v clang++-14 || true) missing=clang++
fi
if [[ -n $other ]]; then compilers+=("$other"); else echo "SKIPPED the second compiler: no $missing"; fi

step "install"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || fail "$(cat "$work/install.log")"
# A prefix that moved shows paths that were written down as absolute ones.
mv "$work/first" "$work/prefix"
prefix=$work/prefix
if grep -rIl -F -e "$build" -e "$work/first" "$prefix"; then
  fail "the files above name the build tree or the old prefix"
fi

step "the program"
"$prefix"/bin/bloomline --version | grep -F -e "$version"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name bloomline.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir bloomline)
[[ $(pkg-config --modversion bloomline) == "$version" ]] || fail "bloomline.pc is of another version than $version"

step "exported symbols"
# The public names, and what other libraries need to catch an Error. Demangled: "address type name".
nm -D --defined-only -C "$libdir/libbloomline.so" | cut -d ' ' -f 2- >"$work/exported"
(($(grep -c ' bloomline::Filter::' "$work/exported") > 20)) || fail "libbloomline.so exports hardly anything"
if grep -v -E '^[TV] ((vtable|typeinfo|typeinfo name) for bloomline::Error$|bloomline::detail::ThrowError\(|bloomline::[A-Z])' \
  "$work/exported"; then
  fail "the symbols above are exported, and are no public functions of namespace bloomline"
fi
grep -o -E ' bloomline::[A-Z][A-Za-z]*' "$work/exported" | sed 's/.*:://' | sort -u | while read -r name; do
  grep -rqw -e "$name" "$prefix/include/bloomline" || fail "bloomline::$name is exported, and no header names it"
done

for compiler in "${compilers[@]}"; do
  short=$(basename "$compiler")

  step "find_package, $short"
  if ! { "$cmake" -S "$here" -B "$work/$short" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Release && "$cmake" --build "$work/$short" -j 2; } >"$work/cmake.log" 2>&1; then
    fail "$(cat "$work/cmake.log")"
  fi
  for program in throwing_shared throwing_static no_exceptions_shared no_exceptions_static; do
    run "$work/$short/$program"
  done
  ldd "$work/$short/throwing_shared" | grep -F "$prefix" >/dev/null ||
    fail "throwing_shared does not use the installed library"
  if ldd "$work/$short/throwing_static" | grep libbloomline; then fail "throwing_static uses a shared library"; fi

  step "pkg-config, $short"
  read -ra cflags <<<"$(pkg-config --cflags bloomline)"
  read -ra shared <<<"$(pkg-config --libs bloomline)"
  read -ra static <<<"$(pkg-config --static --libs bloomline)"
  static=("${static[@]/#-lbloomline/-l:libbloomline.a}")
  later "$compiler" -std=c++20 "${cflags[@]}" -c "$here/throwing.cc" -o "$work/throwing.o"
  later "$compiler" -std=c++20 -fno-exceptions "${cflags[@]}" -c "$here/no_exceptions.cc" -o "$work/no_exceptions.o"
  now
  for program in throwing no_exceptions; do
    "$compiler" "$work/$program.o" -o "$work/$program.shared" "${shared[@]}" -Wl,-rpath,"$libdir"
    run "$work/$program.shared"
    "$compiler" "$work/$program.o" -o "$work/$program.static" "${static[@]}"
    run "$work/$program.static"
  done
done

# Of an inline function's copies the linker keeps one, whatever it was compiled for. So that a program for every
# processor may have parts for better ones, no function of the public headers may be such a copy with their instructions:
# looked for in the objects, and run where they do not exist.
if [[ $(uname -m) != x86_64 ]]; then
  echo "SKIPPED parts for different processors: this machine is $(uname -m)"
  echo "consumer: ok"
  exit 0
fi
processors=(qemu64 Nehalem)
if ! command -v qemu-x86_64 >/dev/null; then
  echo "SKIPPED parts for different processors on $(echo "${processors[@]}"): no qemu-x86_64 (tools/setup.sh emulators)"
  processors=()
fi
levels=(-O0 -O2)
for compiler in "${compilers[@]}"; do
  for level in "${levels[@]}"; do
    step "parts for different processors, $(basename "$compiler") $level"
    flags=(-std=c++20 "$level" "${cflags[@]}" -c)
    later "$compiler" "${flags[@]}" -mavx2 -mbmi2 -mfma -DPART=PartAvx2 "$here/two_targets_part.cc" -o "$work/avx2.o"
    later "$compiler" "${flags[@]}" -msse4.2 -DPART=PartSse42 "$here/two_targets_part.cc" -o "$work/sse42.o"
    later "$compiler" "${flags[@]}" "$here/two_targets.cc" -o "$work/plain.o"
    now
    # Functions "<_ZN9bloomline...>" with an instruction of AVX, FMA or BMI2 in them.
    if objdump -d --no-show-raw-insn "$work/avx2.o" | awk '
      /^[0-9a-f]+ </ { name = $2 }
      /\t(v[a-z]|shlx|shrx|sarx|mulx|rorx|pdep|pext|bzhi)/ && name ~ /^<_ZNK?9bloomline/ && !(name in seen) {
        seen[name]; print name }' | c++filt | grep .; then
      fail "the functions above, inline in public headers, were compiled for AVX2, and may be kept for all processors"
    fi
    "$compiler" "$work/avx2.o" "$work/sse42.o" "$work/plain.o" -o "$work/parts" "${static[@]}"
    "$compiler" "$work/avx2.o" "$work/sse42.o" "$work/plain.o" -o "$work/parts.shared" "${shared[@]}" \
      -Wl,-rpath,"$libdir"
    version=parts
    for program in "$work/parts" "$work/parts.shared"; do
      run "$program"
      for processor in "${processors[@]}"; do run qemu-x86_64 -cpu "$processor" "$program"; done
    done
  done
  levels=(-O2) # without optimisation, one compiler inlines what the other does
done
step "done"
echo "consumer: ok"
