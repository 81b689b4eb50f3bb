#!/usr/bin/env bash
# Installs the Debian packages that bloomline is built from. Root, or a user who may sudo.
#
#   tools/setup.sh [GROUP...]
#     build      compiler, CMake, libraries (the default)
#     test       GoogleTest, clang
#     bench      Google Benchmark; libbloom and LevelDB, which are measured beside it
#     plots      matplotlib, for tools/bench.sh
#     words      Debian's word lists, which tools/quickstart.sh reads
#     emulators  qemu, for tools/emulate_x86.sh
#     aarch64    cross compiler and qemu, for tools/aarch64.sh
#     numa       qemu, busybox and cpio, for tools/numa_vm.sh
#     gate       valgrind, for tools/instructions.sh
#     coverage   clang's coverage tools, for tools/coverage.sh
#     all        all of these
#
# Says so in one line, and needs no rights, where everything is there already.
set -euo pipefail

build=(g++ make cmake pkg-config libhwy-dev libhwloc-dev libxxhash-dev libcli11-dev nlohmann-json3-dev)
test=(libgtest-dev clang)
bench=(libbenchmark-dev python3 libbloom-dev libleveldb-dev)
plots=(python3-matplotlib)
words=(wamerican wamerican-insane)
emulators=(qemu-user)
aarch64=(g++-aarch64-linux-gnu qemu-user)
numa=(qemu-system-x86 busybox-static cpio)
gate=(valgrind)
coverage=(clang llvm libclang-rt-dev)

die() {
  echo "setup.sh: $1" >&2
  exit "${2:-1}"
}

wanted=()
for group in "${@:-build}"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    plots) wanted+=("${plots[@]}") ;;
    words) wanted+=("${words[@]}") ;;
    emulators) wanted+=("${emulators[@]}") ;;
    aarch64) wanted+=("${aarch64[@]}") ;;
    numa) wanted+=("${numa[@]}") ;;
    gate) wanted+=("${gate[@]}") ;;
    coverage) wanted+=("${coverage[@]}") ;;
    all)
      wanted+=("${build[@]}" "${test[@]}" "${bench[@]}" "${plots[@]}" "${words[@]}" "${emulators[@]}"
        "${aarch64[@]}" "${numa[@]}" "${gate[@]}" "${coverage[@]}")
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "unknown group '$group'; known are: build test bench plots words emulators aarch64 numa gate coverage all" 2 ;;
  esac
done

for program in dpkg-query apt-get; do
  command -v "$program" >/dev/null ||
    die "this is not a Debian-like system (no $program). Install by other means: ${wanted[*]}"
done

# Fills `missing` with those of `wanted` that are not installed. One call for all: it is run on every build.
find_missing() {
  local installed
  installed=$(dpkg-query -W -f='${Package} ${Status}\n' "${wanted[@]}" 2>/dev/null |
    sed -n 's/ install ok installed$//p') || true
  missing=()
  local package
  for package in "${wanted[@]}"; do
    grep -qxF -e "$package" <<<"$installed" || missing+=("$package")
  done
}

find_missing
if ((${#missing[@]} == 0)); then
  echo "setup.sh: all ${#wanted[@]} packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || die "installing needs root, and there is no sudo. As root: apt-get install ${missing[*]}"
  if [[ -t 0 && -t 2 ]]; then
    as_root=(sudo)
  else
    as_root=(sudo -n) # nobody is there to type a password
  fi
  "${as_root[@]}" true || die "installing needs root, and sudo refuses. As root: apt-get install ${missing[*]}"
fi

echo "setup.sh: installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Package lists may be old, or absent as in container images. A failed update is no harm if the install works.
"${apt[@]}" update </dev/null >"$log" 2>&1 || echo "setup.sh: apt-get update failed, trying with the lists there are" >&2
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then
  tail -n 20 "$log" >&2
  die "apt-get install failed; its last lines are above"
fi
find_missing
((${#missing[@]} == 0)) || die "apt-get reported success, but these are still missing: ${missing[*]}"
echo "setup.sh: done"
