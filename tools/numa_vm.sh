#!/usr/bin/env bash
# Runs a program on a machine with several NUMA nodes: boots Debian's kernel for virtual machines in qemu, with emulated
# nodes of two CPUs each, and a file system in memory that holds busybox, the program and its shared libraries.
#
#   tools/numa_vm.sh [OPTION...] PROGRAM [ARGUMENT...]
#   tools/numa_vm.sh --prepare     fetches what is needed, and ends with 0 or with one line that says what cannot be had
#     --nodes N           NUMA nodes, 1 … 8 (2)
#     --memory MIB        memory of each node (512)
#     --hugepages-2m N    2 MiB pages that the kernel reserves, spread over the nodes (0)
#     --hugepages-1g N    1 GiB pages, likewise; each node needs a GiB for each of its own and some more (0)
#     --cpu MODEL         qemu's model of the CPU (max: AVX2; qemu emulates no AVX-512)
#     --accel tcg|kvm     emulate (the default), or use the processor's virtualisation
#     --timeout SECONDS   for the boot and the run together (300)
#     --env NAME=VALUE    for the program's environment; may be repeated
#     --also PROGRAM      run this one too, afterwards and with the same arguments; may be repeated
#
# Prints what the program prints and ends with its exit status (of several, the first that is not 0); 128 + N where
# signal N ended it. 125: the machine did not report (it crashed, or the time was up), and its console's last lines are
# printed. 2: usage.
# The program runs as root, reads nothing, and finds /proc, /sys, /dev, /tmp and a cgroup2 at /sys/fs/cgroup.
# The kernel is downloaded, not installed, and kept in BLOOMLINE_VM_DIR (default: numa-vm in BUILD_DIR, default build).
set -euo pipefail
exec </dev/null

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
did_not_report=125

die() {
  echo "numa_vm.sh: $1" >&2
  exit "${2:-$did_not_report}"
}

# number OPTION VALUE LEAST MOST
number() {
  if [[ ! $2 =~ ^(0|[1-9][0-9]{0,6})$ ]] || (($2 < $3 || $2 > $4)); then
    die "$1 = '$2': must be a number, $3 … $4" 2
  fi
}

nodes=2 memory=512 huge_2m=0 huge_1g=0 cpu=max accel=tcg limit=300 prepare=false environment=() also=()
while [[ ${1:-} == -* ]]; do
  option=$1
  shift
  case $option in
    --prepare)
      prepare=true
      continue
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --)
      break
      ;;
    --nodes | --memory | --hugepages-2m | --hugepages-1g | --cpu | --accel | --timeout | --env | --also) ;;
    *) die "unknown option '$option'; --help lists them" 2 ;;
  esac
  (($#)) || die "$option needs a value" 2
  case $option in
    --nodes) number "$option" "$1" 1 8 && nodes=$1 ;;
    --memory) number "$option" "$1" 128 1048576 && memory=$1 ;;
    --hugepages-2m) number "$option" "$1" 0 1000000 && huge_2m=$1 ;;
    --hugepages-1g) number "$option" "$1" 0 1000 && huge_1g=$1 ;;
    --timeout) number "$option" "$1" 1 86400 && limit=$1 ;;
    --cpu) cpu=$1 ;;
    --accel)
      [[ $1 == tcg || $1 == kvm ]] || die "--accel = '$1': must be tcg or kvm" 2
      accel=$1
      ;;
    --env)
      [[ $1 =~ ^[A-Za-z_][A-Za-z_0-9]*= ]] || die "--env = '$1': must be NAME=VALUE" 2
      environment+=("$1")
      ;;
    --also) also+=("$1") ;;
  esac
  shift
done

cache=${BLOOMLINE_VM_DIR:-${BUILD_DIR:-$here/../build}/numa-vm}
mkdir -p "$cache"
cache=$(realpath "$cache")
kernel=$cache/vmlinuz

# fetch_kernel DIRECTORY [APT_OPTION...]: the newest kernel that apt knows, unpacked into DIRECTORY.
fetch_kernel() {
  local directory=$1 package
  shift
  package=$(apt-cache "$@" depends linux-image-cloud-amd64 2>/dev/null |
    sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
  [[ -n $package ]] || return 1
  (cd "$directory" && apt-get -qq "$@" -oAPT::Sandbox::User="$(id -un)" download "$package") || return 1
  dpkg-deb --fsys-tarfile "$directory"/linux-image-*.deb | tar -x -C "$directory" --wildcards './boot/vmlinuz-*' || return 1
  mv "$directory"/boot/vmlinuz-* "$kernel"
}

# Everything but the program. Says why where it cannot be had.
make_ready() {
  [[ $(uname -m) == x86_64 ]] || die "this machine is $(uname -m), and the emulated one runs x86-64 programs"
  local said
  if ! said=$("$here/setup.sh" numa 2>&1); then die "$(tail -n 1 <<<"$said")"; fi
  [[ -s $kernel ]] && return
  local work
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  # With the system's package lists, or, where they are old or absent, with lists of our own: that needs no rights.
  mkdir -p "$work/lists/partial" "$work/archives/partial"
  local own=(-oDir::State::Lists="$work/lists" -oDir::Cache="$work" -oAPT::Sandbox::User="$(id -un)")
  if ! fetch_kernel "$work" >"$work/log" 2>&1 &&
    ! { apt-get -qq "${own[@]}" -oAcquire::Retries=3 update && fetch_kernel "$work" "${own[@]}"; } >"$work/log" 2>&1; then
    said=$(grep -m 1 -E '^E:' "$work/log" || echo "apt knows no linux-image-cloud-amd64")
    rm -rf "$work"
    die "no kernel for the machine: $said"
  fi
  rm -rf "$work"
}

make_ready
if $prepare; then exit 0; fi
(($#)) || die "no program; --help says how it is called" 2
programs=("$1" ${also[@]+"${also[@]}"})
shift
for program in "${programs[@]}"; do
  [[ -f $program && -x $program ]] || die "$program: is not a program" 2
done

run=$(mktemp -d "$cache/run.XXXXXX")
machine=
cleanup() {
  [[ -z $machine ]] || kill "$machine" 2>/dev/null || true
  rm -rf "$run"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A word of the shell that init is written in.
quoted() { printf "'%s' " "${1//\'/\'\\\'\'}"; }

root=$run/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,etc}
cp "$(command -v busybox)" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
for i in "${!programs[@]}"; do cp "${programs[i]}" "$root/program$i"; done
# The libraries and the loader, where the programs look for them; a static program has none.
for program in "${programs[@]}"; do ldd "$program" 2>/dev/null || true; done | sed -n 's|^[^/]*\(/[^ ]*\).*|\1|p' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

# ttyS0 is the kernel's, ttyS1 the program's (its bytes as they are: no carriage returns), ttyS2 takes the status.
{
  cat <<'INIT'
#!/bin/sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b mount -t tmpfs tmp /tmp
$b mount -t cgroup2 cgroup /sys/fs/cgroup
$b stty -F /dev/ttyS1 -opost
$b stty -F /dev/ttyS2 -opost
status=0
ulimit -c 0
cd /tmp
INIT
  for variable in HOME=/tmp TMPDIR=/tmp TERM=dumb ${environment[@]+"${environment[@]}"}; do
    echo "export ${variable%%=*}=$(quoted "${variable#*=}")"
  done
  for i in "${!programs[@]}"; do
    echo -n "/program$i "
    for argument in "$@"; do quoted "$argument"; done
    echo '</dev/null >/dev/ttyS1 2>&1; s=$?; [ $status != 0 ] || status=$s'
  done
  # A serial line is drained when it is closed; only then may the machine go.
  echo 'echo $status >/dev/ttyS2'
  echo '$b poweroff -f'
} >"$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet >"$run/initramfs")
rm -rf "$root"

arguments=(-machine pc -accel "$accel" -cpu "$cpu" -smp "$((2 * nodes)),sockets=$nodes,cores=2,threads=1"
  -m "$((nodes * memory))M" -nodefaults -display none -no-reboot
  -kernel "$kernel" -initrd "$run/initramfs" -serial "file:$run/console" -serial stdio -serial "file:$run/status")
for ((node = 0; node < nodes; ++node)); do
  arguments+=(-object "memory-backend-ram,id=memory$node,size=${memory}M"
    -numa "node,nodeid=$node,memdev=memory$node,cpus=$((2 * node))-$((2 * node + 1))")
done
line="console=ttyS0 quiet panic=-1"
((huge_2m == 0)) || line+=" hugepagesz=2M hugepages=$huge_2m"
((huge_1g == 0)) || line+=" hugepagesz=1G hugepages=$huge_1g"

timeout --foreground -k 5 "$limit" qemu-system-x86_64 "${arguments[@]}" -append "$line" 2>"$run/qemu" &
machine=$!
ended=0
wait "$machine" || ended=$?
machine=
status=$(tr -dc 0-9 <"$run/status" 2>/dev/null) || true
if ((ended != 0)) || [[ -z $status ]]; then
  {
    tail -n 20 "$run/console" | tr -d '\r' || true
    tail -n 5 "$run/qemu"
  } >&2 2>/dev/null
  ((ended != 124 && ended != 137)) || die "the machine did not report within $limit s"
  die "the machine did not report (qemu ended with $ended)"
fi
exit "$status"
