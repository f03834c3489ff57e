#!/usr/bin/env bash
# Installs what is missing, builds and runs the tests.
#   ./test.sh           everything: lint, sanitizers, short fuzzing, then the tests of the release build
#   ./test.sh --quick   only the release build and its tests
#   ./test.sh --long    everything, with ten minutes for each fuzz target and the tests labelled long
# At the end it lists the tests that were skipped, with what this machine lacks for them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

mode=full
fuzz_seconds=0
cold_optimised=OFF
case "${1:-}" in
  '') ;;
  --quick) mode=quick ;;
  --long) mode=long fuzz_seconds=600 cold_optimised=ON ;;
  *) die "unknown option $1; usage: ./test.sh [--quick | --long]" ;;
esac
[ $# -le 1 ] || die "too many options; usage: ./test.sh [--quick | --long]"
tests=(--output-on-failure --parallel $(($(nproc) + 1))) # many wait for clocks, browsers and daemons
left_out='long'
[ "$mode" != long ] || left_out='none'
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19

# run_tests DIR CTEST-OPTION... : runs the tests of a build and notes which of them were skipped, in a
# file, since some run in the background.
skips=$(mktemp)
run_tests() {
  local dir=$1 status=0 name reasons
  shift
  local log=$dir/Testing/Temporary
  mkdir -p "$log"
  ctest --test-dir "$dir" "${tests[@]}" "$@" 2>&1 | tee "$log/ctest.out" || status=$?
  while read -r name; do
    # The reasons stand in what the test printed: SKIPPED: test case: reason
    mapfile -t reasons < <(awk -v name="$name" '
      / Testing: / { here = substr($0, index($0, " Testing: ") + 10) == name }
      here && /^SKIPPED: / { print substr($0, 10) }' "$log/LastTest.log")
    [ ${#reasons[@]} -gt 0 ] || reasons=('NO REASON GIVEN')
    printf '%s\n' "${reasons[@]/#/$dir: $name: }" >>"$skips"
  done < <(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' "$log/ctest.out")
  return "$status"
}

# Whatever came of the rest: what was not tested, and why. A skip without a reason is a failure.
list_skips() {
  local status=$?
  if [ ! -s "$skips" ]; then
    say "No test was skipped"
  else
    say "SKIPPED, $(wc -l <"$skips") test cases:"
    cat "$skips"
    ! grep -q 'NO REASON GIVEN' "$skips" || status=1
  fi
  rm -f "$skips"
  exit "$status"
}

# Sources that differ from where this work left the main line; of the last commit when on it.
changed_sources() {
  local base
  git rev-parse --git-dir >/dev/null 2>&1 || return 0
  base=$(git merge-base HEAD origin/HEAD 2>/dev/null || git merge-base HEAD main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  fi
  git diff --name-only --diff-filter=d "$base" -- '*.cpp'
}

lint() {
  say "Format"
  find src tests bench python -name '*.[ch]pp' -print0 |
    xargs -0 clang-format-19 --dry-run -Werror || die "run scripts/format.sh"
  local sources
  mapfile -t sources < <(changed_sources)
  # A source that is compiled together with others is checked alone, with the options of its unit.
  local build=build/asan-ubsan source unit entry units checked=()
  mkdir -p "$build/lint"
  for source in "${sources[@]}"; do
    source=$PWD/$source
    mapfile -t units < <(grep -rlxF "#include \"$source\"" "$PWD/$build" --include='*.cxx')
    for unit in "$source" "${units[@]}"; do
      entry=$(grep -B 2 -F "\"file\": \"$unit\"" "$build/compile_commands.json") || continue
      printf '{%s},\n' "${entry//"$unit"/"$source"}"
      checked+=("$source")
      break
    done # without a unit: comparisons with other programs, which are built by hand
  done >"$build/lint/commands"
  [ ${#checked[@]} -gt 0 ] || return 0
  sed '1s/^/[/; $s/,$/]/' "$build/lint/commands" >"$build/lint/compile_commands.json"
  say "clang-tidy on ${#checked[@]} changed sources"
  printf '%s\0' "${checked[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$build/lint" 2> >(grep -v ' warnings\? generated' >&2)
}

# Tests labelled threads, with --long also threads_long, are run under ThreadSanitizer.
threads='^threads$'
[ "$mode" != long ] || threads='^threads(_long)?$'

# One build serves the sanitizers and the fuzz targets, which are tests there; and what ThreadSanitizer runs.
build_sanitized() {
  chrt --idle --pid 0 "$BASHPID" >/dev/null 2>&1 || renice -n 19 "$BASHPID" >/dev/null
  build asan-ubsan -DWEFT_FUZZ=ON -DWEFT_PAGE_REQUIRED=ON "-DWEFT_FUZZ_SECONDS=$fuzz_seconds" \
    "-DWEFT_COLD_OPTIMISED=$cold_optimised"
  local programs
  # Several entries of CTest may be of one program.
  mapfile -t programs < <(ctest --test-dir build/release -N -V -L "$threads" |
    sed -n 's/^[0-9]*: Test command: \([^ ]*\).*/\1/p' | xargs -r -n 1 basename | sort -u)
  say "Building build/tsan"
  cmake --preset tsan
  cmake --build build/tsan --parallel "$(nproc)" --target "${programs[@]}"
}

trap list_skips EXIT
packages=("${weft_packages_build[@]}")
[ "$mode" = quick ] || packages+=("${weft_packages_test[@]}")
install_packages "${packages[@]}"

if [ "$mode" = quick ]; then
  build release -DBUILD_TESTING=ON -DWEFT_REPLAY=ON -DWEFT_PAGE_REQUIRED=ON
else
  build release -DBUILD_TESTING=ON -DWEFT_BENCH=ON -DWEFT_REPLAY=OFF -DWEFT_PYTHON=ON -DWEFT_PAGE_REQUIRED=ON # the build below fuzzes
fi
status=0
# Labs wait for timers most of their time, and are timed: beside them only builds, which take what they leave.
if [ "$mode" != quick ]; then
  building=build/sanitizers.log
  build_sanitized >"$building" 2>&1 &
  builder=$!
fi
say "Labs of the release build"
run_tests build/release -L '^lab$' -LE "^$left_out\$" || status=$?
if [ "$mode" != quick ]; then
  say "Builds under sanitizers, begun beside the labs"
  tail --pid="$builder" --lines=+1 --follow "$building"
  wait "$builder" || die "they do not build"
  lint
  say "Tests under ThreadSanitizer"
  run_tests build/tsan -L "$threads" || status=$?
  say "Tests under AddressSanitizer and UndefinedBehaviorSanitizer, and fuzz targets"
  ASAN_OPTIONS=malloc_context_size=8 run_tests build/asan-ubsan -LE "^(perf|$left_out)\$" || status=$?
fi
say "Tests of the release build"
run_tests build/release -LE "^(lab|$left_out)\$" || status=$?
exit "$status"
