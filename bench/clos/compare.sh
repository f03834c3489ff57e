#!/usr/bin/env bash
# compare.sh BUILD_DIR [ROUNDS]: weft and SimGrid alternately on the same instances, CPU seconds.
# Needs libsimgrid-dev at configure time (cmake --preset bench).
set -euo pipefail
build=${1:?build directory}
rounds=${2:-3}
for flows in 1000 2000 4000 8000; do
  for ((round = 0; round < rounds; ++round)); do
    "$build/bench/clos/drain_weft" "$flows"
    "$build/bench/clos/drain_simgrid" "$flows"
  done
done
"$build/bench/clos/drain_weft" 64000
"$build/bench/clos/drain_simgrid" 64000 1 60
