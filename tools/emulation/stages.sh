# Sourced by tools/aarch64.sh and tools/emulate_x86.sh: the tests of a build tree on an emulated processor, one printed
# line per processor, with the target that really ran.
#
# The caller sets: script (its name, for messages), skip_missing (true or false), build (a build tree).

# The programs that touch vector code. The others know nothing of targets, and run natively.
emulated_tests=(kernel_test counting_kernel_test batch_test golden_bytes_test hash_test filter_test)
emulated_layouts=(z1 z2 z4 z8 line512 split256)

fail() {
  echo "$script: FAILED: $*" >&2
  exit 1
}

# Something that the emulation needs is not there.
missing() {
  $skip_missing || fail "$* (--skip-missing would skip instead)"
  echo "$script: SKIPPED: $*"
  exit 0
}

# Installs groups of tools/setup.sh.
install_groups() {
  local said
  if ! said=$(tools/setup.sh "$@" 2>&1); then
    missing "tools/setup.sh $*: $(tail -n 1 <<<"$said")"
  fi
}

# Runs a command that talks a lot; shows what it said only when it fails.
quietly() {
  local log=$build/emulation.log
  if ! "$@" >"$log" 2>&1; then
    grep -n -m 20 -E 'error|Error' "$log" >&2 || true
    tail -n 40 "$log" >&2
    fail "$*"
  fi
}

# "a b c" of a JSON array of strings: json_list KEY JSON
json_list() { sed -n "s/.*\"$1\":\[\([^]]*\)\].*/\1/p" <<<"$2" | tr -d '"' | tr ',' ' '; }

# run_target NAME WANTED EMULATOR...
#
# Runs the tests on the emulated processor, for the target WANTED: those of the worse targets, which it supports too,
# have processors of their own. Fails if the library would choose another target there, if a test fails, or if the
# kernels of some layout were not tested on WANTED.
run_target() {
  local name=$1 wanted=$2
  shift 2
  local began=$SECONDS log=$build/emulation.log json chosen
  json=$("$@" "$build/bin/bloomline" targets --json 2>"$log" | tr -d ' \n') ||
    fail "$name: bloomline targets: $(tail -n 1 "$log")"
  chosen=$(sed -n 's/.*"chosen":"\([^"]*\)".*/\1/p' <<<"$json")
  [[ $chosen == "$wanted" ]] || fail "$name: the processor should run $wanted, and the library chose '$chosen': $json"

  # Mapping hundreds of gigabytes, never touched, takes qemu long. Two layouts have the two ways of finding a block.
  local filter="*-*Large*:*HugeBlockCounts/${wanted}_z1:*HugeBlockCounts/${wanted}_z2" other
  filter+=":*HugeBlockCounts/${wanted}_z4:*HugeBlockCounts/${wanted}_line512"
  for other in $(json_list supported "$json"); do
    [[ $other == "$wanted" ]] && continue
    filter+=":*/$other:*/${other}_z?:*/${other}_line512:*/${other}_split256:*/${other}_counting?_*"
  done

  local passed=0 skipped=0 test layout passes skips
  for test in "${emulated_tests[@]}"; do
    if ! BLOOMLINE_TARGET=$wanted timeout 900 "$@" "$build/tests/$test" --gtest_filter="$filter" >"$log" 2>&1; then
      grep -m 20 -A 8 -E 'Failure$|^\[  FAILED' "$log" >&2 || tail -n 40 "$log" >&2
      fail "$name: $test on $wanted"
    fi
    passes=$(grep -c -E '^\[       OK \]' "$log") || fail "$name: $test ran no test on $wanted"
    skips=$(grep -c -E '^\[  SKIPPED \].* ms\)$' "$log") || true # grep -c ends with 1 when it counts 0
    passed=$((passed + passes))
    skipped=$((skipped + skips))
    case $test in
      counting_kernel_test)
        grep -q -E "^\[       OK \] .*BatchesEqualTheOracle/${wanted}_counting4_spill " "$log" ||
          fail "$name: no kernel of counting4 was tested on $wanted"
        ;;
      kernel_test)
        for layout in "${emulated_layouts[@]}"; do
          grep -q -E "^\[       OK \] .*BatchLengths/${wanted}_$layout " "$log" ||
            fail "$name: no kernel of $layout was tested on $wanted"
        done
        ;;
      batch_test)
        grep -q -E "^\[       OK \] .*/$wanted " "$log" || fail "$name: batch_test did not run on $wanted"
        ;;
    esac
  done
  local line="$passed tests passed"
  ((skipped == 0)) || line+=", $skipped skipped"
  printf '%-9s ran on %-30s %s, %d s\n' "$wanted" "$name" "$line" $((SECONDS - began))
}
