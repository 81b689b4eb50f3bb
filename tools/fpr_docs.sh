#!/usr/bin/env bash
# Regenerates the FPR charts and the table of the documentation: docs/fpr_by_bits.md, its chart of predictions
# fpr_by_bits.svg and its chart of measurements fpr_measured.svg.
#
#   tools/fpr_docs.sh [-B BUILD] [-o DIRECTORY]
#
# BUILD (default: build) must hold bin/bloomline. Takes some ten seconds: the measurements are made anew.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
out=$root/docs

die() {
  echo "fpr_docs.sh: $1" >&2
  exit "${2:-1}"
}

while getopts B:o:h option; do
  case $option in
    B) build=$OPTARG ;;
    o) out=$OPTARG ;;
    h)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "usage: fpr_docs.sh [-B BUILD] [-o DIRECTORY]" 2 ;;
  esac
done
shift $((OPTIND - 1))
(($# == 0)) || die "unknown argument '$1'" 2

program=$build/bin/bloomline
[[ -x $program ]] || die "no $program. Build it: cmake -S $root -B $build && cmake --build $build --target bloomline_cli"
mkdir -p "$out"
table=$out/fpr_by_bits.md
{
  echo "# False-positive rate by bits per key"
  echo
  echo "Predicted for many blocks, each layout at its best k (in brackets). Made by \`tools/fpr_docs.sh\`;"
  echo "\`bloomline fpr\` gives any other value, \`bloomline validate\` holds the filters against them."
  echo
  echo "![FPR against bits per key](fpr_by_bits.svg)"
  echo
  "$program" fpr --table --svg "$out/fpr_by_bits.svg"
  echo
  echo "Measured by \`bloomline validate --quick\`, on the same curves; counting layouts at counters per key:"
  echo
  echo "![Measured FPR on the predicted curves](fpr_measured.svg)"
} >"$table.new"
"$program" validate --quick --svg "$out/fpr_measured.svg" >/dev/null
mv "$table.new" "$table"
echo "fpr_docs.sh: wrote $table, $out/fpr_by_bits.svg and $out/fpr_measured.svg"
