#!/bin/sh
# Where npm fails or is missing, build.sh says so and still writes a source that compiles.
set -eu
web=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "build_test.sh: $*" >&2; exit 1; }

for npm in false WEFT_NPM-NOTFOUND ''; do
  NPM=$npm NODE=node sh "$web/build.sh" "$scratch/web" "$scratch/assets.cpp" 2>"$scratch/said" ||
    fail "NPM='$npm' failed the build"
  grep -q 'npm could not build the interactive report page' "$scratch/said" || fail "no warning for NPM='$npm'"
  grep -q 'page_assets{}, console_assets{}' "$scratch/assets.cpp" || fail "no assets for NPM='$npm'"
  [ -e "$scratch/assets.cpp.missing" ] || fail "the next build would not try again"
  if NPM=$npm NODE=node PAGE_REQUIRED=1 sh "$web/build.sh" "$scratch/web" "$scratch/assets.cpp" 2>/dev/null; then
    fail "NPM='$npm' passed although the page is required"
  fi
done
