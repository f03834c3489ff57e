#!/usr/bin/env bash
# Installs what is missing, builds weft and simulates the main example: a mix of training jobs on a
# 252-rack AI Zone under several routing schemes. Arguments go to `weft run`, e.g. --seed 2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

install_packages "${weft_packages_build[@]}"
build release -DBUILD_TESTING=OFF

out=out/ai-zone-mix
say "weft run scenarios/ai-zone-mix.yaml --out $out $*"
build/release/weft run scenarios/ai-zone-mix.yaml --out "$out" "$@"
say "The report: $PWD/$out/report.html (numbers: report.json, time line: trace.json.gz)"
