# Sourced by tools/test.sh: runs stages, each a function stage_NAME, prints a line for each, and counts tests.
#
# A stage calls passed, failed and skipped_tests with counts, says what ran by `note`, and ends with 0, or with 1 after
# having shown why; or it calls `skip WHY` where it cannot run here. Stages run in subshells: what they count goes
# through files.

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
jobs=${JOBS:-$(nproc)}
any_failed=false

clock() { printf '%2d:%02d' $(($1 / 60)) $(($1 % 60)); }

known_stage() {
  local name
  for name in "${all_stages[@]}"; do [[ $name != "$1" ]] || return 0; done
  return 1
}

# ---- What stages call.

passed() { echo "${1:-1}" >>"$scratch/passed"; }
failed() { echo "${1:-1}" >>"$scratch/failed"; }
skipped_tests() { echo "${1:-1}" >>"$scratch/skipped"; }
note() { echo "$*" >>"$scratch/note"; }
skip() {
  echo "$*" >"$scratch/why"
  exit 77
}
# Why a stage failed, after whatever it showed.
give_up() {
  echo "test.sh: $*" >&2
  exit 1
}

# Runs a command that talks a lot; shows what it said only when it fails.
quietly() {
  local log=$scratch/log
  if ! "$@" >"$log" 2>&1; then
    # The first error explains; with make -j it may stand far above the end.
    grep -n -m 20 -E 'error|Error' "$log" >&2 || true
    tail -n 60 "$log" >&2
    give_up "failed: $*"
  fi
}

# packages GROUP...: those of tools/setup.sh, or the stage is skipped.
packages() {
  local said
  said=$(tools/setup.sh "$@" 2>&1) || skip "tools/setup.sh $*: $(tail -n 1 <<<"$said")"
}

# The number behind a word in the first line of a JUnit file.
junit_count() { grep -o -m 1 -E "\b$2=\"[0-9]+\"" "$1" | head -n 1 | tr -dc 0-9; }

# run_ctest BUILD [CTEST OPTION...]: counts; leaves the JUnit file in $scratch/junit.xml.
run_ctest() {
  local build=$1 status total not_run bad
  shift
  set +e
  ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error --output-junit "$scratch/junit.xml" "$@" \
    >"$scratch/ctest" 2>&1
  status=$?
  set -e
  if ((status != 0)); then
    grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed )' "$scratch/ctest" | tail -n 200 >&2
  fi
  [[ -s $scratch/junit.xml ]] || give_up "ctest ran nothing in $build: $(tail -n 1 "$scratch/ctest")"
  total=$(junit_count "$scratch/junit.xml" tests) bad=$(junit_count "$scratch/junit.xml" failures)
  not_run=$(($(junit_count "$scratch/junit.xml" disabled) + $(junit_count "$scratch/junit.xml" skipped)))
  passed $((total - bad - not_run))
  ((bad == 0)) || failed "$bad"
  ((not_run == 0)) || skipped_tests "$not_run"
  return "$status"
}

# ---- Running them.

sum() { awk '{ total += $1 } END { print total + 0 }' "$1" 2>/dev/null || echo 0; }

counts() {
  local text="$(sum "$scratch/passed") passed"
  [[ ! -s $scratch/failed ]] || text+=", $(sum "$scratch/failed") FAILED"
  [[ ! -s $scratch/skipped ]] || text+=", $(sum "$scratch/skipped") skipped"
  echo "$text"
}

run_stage() {
  local name=$1 began=$SECONDS status=0 text
  rm -f "$scratch"/{passed,failed,skipped,note,why}
  set +e
  (
    set -e
    "stage_$name"
  )
  status=$?
  set -e
  text=$([[ ! -s $scratch/passed ]] || counts)
  [[ ! -s $scratch/note ]] || text+="${text:+; }$(paste -s -d ' ' "$scratch/note")"
  if ((status == 77)); then
    text="SKIPPED: $(cat "$scratch/why")"
    if [[ $required == *" $name "* || $required == *" all "* ]]; then
      text+=" (and it is required)"
      failed
      status=1
    else
      status=0
    fi
  elif ((status != 0)) || [[ -s $scratch/failed ]]; then
    [[ -s $scratch/failed ]] || failed
    status=1
    text="FAILED ${text}"
  fi
  printf '%-13s %s  %s\n' "$name" "$(clock $((SECONDS - began)))" "$text"
  ((status == 0)) || any_failed=true
  local kind
  for kind in passed failed skipped; do
    [[ ! -s $scratch/$kind ]] || cat "$scratch/$kind" >>"$scratch/all_$kind"
  done
  # Nothing can be tested that was not built.
  if ((status != 0)) && [[ $name == build ]]; then
    summary
  fi
}

# The last line, and the exit status.
summary() {
  local text="$(sum "$scratch/all_passed") passed, $(sum "$scratch/all_failed") failed" skips
  skips=$(sum "$scratch/all_skipped")
  ((skips == 0)) || text+=", $skips skipped"
  echo "$text"
  ! $any_failed
  exit
}
