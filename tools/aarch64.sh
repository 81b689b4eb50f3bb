#!/usr/bin/env bash
# Cross-builds bloomline for 64-bit ARM and runs its tests on emulated processors, from nothing: installs the cross
# compiler and the emulator, and unpacks the arm64 libraries into a folder of the build tree. Packages of another
# architecture are not installed, and dpkg is not told of any.
#
#   tools/aarch64.sh [--skip-missing] [--sysroot-only] [TARGET...]
#     TARGET  NEON (cortex-a72), SVE (a64fx), SVE2 (max, also with the longest vectors and an odd length), SVE2_128,
#             SVE_256; all of them by default
#     --skip-missing  where the packages cannot be had, print SKIPPED and why, and end with 0
#     --sysroot-only  stop when the arm64 libraries are there, and print their folder
#
# BUILD_DIR (default build-aarch64) is the build tree, BLOOMLINE_SYSROOT (default BUILD_DIR/sysroot) the folder of the
# arm64 libraries, JOBS how many compilers at once. One line per processor says what ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

script=aarch64.sh
build=${BUILD_DIR:-build-aarch64}
jobs=${JOBS:-$(nproc)}
skip_missing=false
sysroot_only=false
all=(NEON SVE SVE2 SVE2_128 SVE_256)
targets=()
for argument in "$@"; do
  case $argument in
    --skip-missing) skip_missing=true ;;
    --sysroot-only) sysroot_only=true ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    NEON | SVE | SVE2 | SVE2_128 | SVE_256) targets+=("$argument") ;;
    *)
      echo "$script: unknown argument '$argument'; known are: --skip-missing --sysroot-only --help ${all[*]}" >&2
      exit 2
      ;;
  esac
done
((${#targets[@]})) || targets=("${all[@]}")
. tools/emulation/stages.sh

mkdir -p "$build"
build=$(realpath "$build")
sysroot=$(realpath -m "${BLOOMLINE_SYSROOT:-$build/sysroot}")
libraries=(libhwy-dev libhwy1 libhwloc-dev libhwloc15 libxxhash-dev libxxhash0 libgtest-dev libbenchmark-dev
  libbenchmark1debian libnuma-dev libnuma1 libudev1 libltdl7 libcli11-dev nlohmann-json3-dev)

# Downloads the arm64 packages by an apt that knows no other architecture and keeps its lists and state here, and
# unpacks them. What the C++ compiler brings (C and C++ libraries) is not among them.
make_sysroot() {
  local apt_dir package
  [[ $(cat "$sysroot/packages" 2>/dev/null) == "${libraries[*]}" ]] && return
  apt_dir=$(mktemp -d)
  mkdir -p "$apt_dir"/{lists/partial,cache/archives/partial,debs} "$sysroot"
  : >"$apt_dir/status"
  local apt=(apt-get -qq -oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$apt_dir/lists"
    -oDir::State::status="$apt_dir/status" -oDir::Cache="$apt_dir/cache" -oAPT::Sandbox::User="$(id -un)"
    -oAcquire::Retries=3)
  if ! { "${apt[@]}" update && cd "$apt_dir/debs" && "${apt[@]}" download "${libraries[@]}"; } \
    >"$apt_dir/log" 2>&1; then
    local why
    why=$(grep -m 1 -E '^E:' "$apt_dir/log" || tail -n 1 "$apt_dir/log")
    rm -rf "$apt_dir"
    missing "the arm64 libraries: $why"
  fi
  for package in "$apt_dir"/debs/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  rm -rf "$apt_dir"
  cd - >/dev/null
  echo "${libraries[*]}" >"$sysroot/packages" # only when all is there
}

install_groups build aarch64
make_sysroot
if $sysroot_only; then
  echo "$sysroot"
  exit 0
fi

if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && ccache --show-stats >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
quietly cmake --preset aarch64 -B "$build" -DBLOOMLINE_SYSROOT="$sysroot"
quietly cmake --build "$build" -j "$jobs" --target bloomline_cli "${emulated_tests[@]}"

libs=/usr/aarch64-linux-gnu
on_arm() { # NAME TARGET CPU
  run_target "$1" "$2" qemu-aarch64 -L "$libs" \
    -E "LD_LIBRARY_PATH=$libs/lib:$sysroot/usr/lib/aarch64-linux-gnu:$sysroot/lib/aarch64-linux-gnu" -cpu "$3"
}

# qemu gives programs 512-bit vectors unless told otherwise; Highway takes the power of two below an odd length.
for target in "${targets[@]}"; do
  case $target in
    NEON) on_arm cortex-a72 NEON cortex-a72 ;;
    SVE) on_arm "a64fx" SVE a64fx ;;
    SVE2)
      on_arm "max, 512-bit vectors" SVE2 max
      on_arm "max, 2048-bit vectors" SVE2 max,sve-default-vector-length=256
      on_arm "max, 384-bit vectors" SVE2 max,sve384=on,sve512=off,sve-default-vector-length=48
      ;;
    SVE2_128) on_arm "max, 128-bit vectors" SVE2_128 max,sve-max-vq=1 ;;
    SVE_256) on_arm "max, 256-bit vectors" SVE_256 max,sve256=on,sve512=off,sve-default-vector-length=32 ;;
  esac
done
