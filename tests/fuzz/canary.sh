#!/bin/sh
# canary.sh PROGRAM FOLDER REPORT : passes if fuzzing PROGRAM, from nothing, finds an input that ends it
# with that report of a sanitizer, and that input alone does so again.
set -eu
program=$1 folder=$2 report=$3

fail() {
  echo "$1"
  tail -n 20 "$folder/$2"
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
if "$program" -seed=1 -runs=10000000 -max_total_time=200 -max_len=32 -artifact_prefix="$folder/" \
  >"$folder/log" 2>&1; then
  fail "the planted bug was not found" log
fi
grep -q "$report" "$folder/log" || fail "it ended without \"$report\"" log
set -- "$folder"/crash-*
[ $# -eq 1 ] && [ -s "$1" ] || fail "not one input was kept, but: $*" log
if "$program" "$1" >"$folder/again" 2>&1; then
  fail "the input that was kept does no harm" again
fi
grep -q "$report" "$folder/again" || fail "again, it ended without \"$report\"" again
echo "found: $(cat "$1")"
