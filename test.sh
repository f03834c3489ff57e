#!/usr/bin/env bash
# Installs what is missing, builds and runs the tests.
#   ./test.sh           everything: lint, sanitizers, short fuzzing, then the tests of the release build
#   ./test.sh --quick   only the release build and its tests
#   ./test.sh --long    everything, with ten minutes for each fuzz target and the tests labelled long
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

mode=full
fuzz_seconds=0
case "${1:-}" in
  '') ;;
  --quick) mode=quick ;;
  --long) mode=long fuzz_seconds=600 ;;
  *) die "unknown option $1; usage: ./test.sh [--quick | --long]" ;;
esac
[ $# -le 1 ] || die "too many options; usage: ./test.sh [--quick | --long]"
tests=(--output-on-failure --parallel "$(nproc)")
skipped='long'
[ "$mode" != long ] || skipped='none'
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19

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
  find src tests bench -name '*.[ch]pp' -print0 |
    xargs -0 clang-format-19 --dry-run -Werror || die "run scripts/format.sh"
  local sources
  mapfile -t sources < <(changed_sources)
  # Only what the build knows: comparisons with other programs are built by hand.
  local known=() source
  for source in "${sources[@]}"; do
    grep -q "\"$PWD/$source\"" build/asan-ubsan/compile_commands.json && known+=("$source")
  done
  say "clang-tidy on ${#known[@]} changed sources"
  [ ${#known[@]} -eq 0 ] || printf '%s\0' "${known[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p build/asan-ubsan \
      2> >(grep -v ' warnings\? generated' >&2)
}

# Tests labelled threads, with --long also threads_long, under ThreadSanitizer; nothing is built
# when there are none.
thread_tests() {
  local names label='^threads$'
  [ "$mode" != long ] || label='^threads(_long)?$'
  mapfile -t names < <(ctest --test-dir build/release -N -L "$label" |
    sed -n 's/^ *Test *#[0-9]*: //p')
  [ ${#names[@]} -gt 0 ] || return 0
  say "ThreadSanitizer: ${names[*]}"
  cmake --preset tsan >/dev/null
  cmake --build build/tsan --parallel "$(nproc)" --target "${names[@]/%/_test}"
  ctest --test-dir build/tsan -L "$label" "${tests[@]}"
}

packages=("${weft_packages_build[@]}")
[ "$mode" = quick ] || packages+=("${weft_packages_test[@]}")
install_packages "${packages[@]}"

if [ "$mode" = quick ]; then
  build release -DBUILD_TESTING=ON -DWEFT_REPLAY=ON
else
  build release -DBUILD_TESTING=ON -DWEFT_BENCH=ON -DWEFT_REPLAY=OFF # the build below fuzzes
fi
if [ "$mode" != quick ]; then
  # One build serves the sanitizers and the fuzz targets, which are tests there.
  build asan-ubsan -DWEFT_FUZZ=ON "-DWEFT_FUZZ_SECONDS=$fuzz_seconds"
  lint
  say "Tests under AddressSanitizer and UndefinedBehaviorSanitizer, and fuzz targets"
  ctest --test-dir build/asan-ubsan "${tests[@]}" -LE "^(perf|$skipped)\$"
  thread_tests
fi
say "Tests of the release build"
ctest --test-dir build/release "${tests[@]}" -LE "^$skipped\$"
