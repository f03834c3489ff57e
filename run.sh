#!/usr/bin/env bash
# Installs what is missing, builds weft and simulates the main example: a training step of Llama-3
# 405B on an AI Zone, under several routing schemes, failures and rank orders. Arguments go to
# `weft run`, e.g. --seed 2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

install_packages "${weft_packages_build[@]}"
build release -DBUILD_TESTING=OFF

out=out/llama3-405b
say "weft run scenarios/llama3-405b.yaml --out $out $*"
build/release/weft run scenarios/llama3-405b.yaml --out "$out" "$@"
say "The report: $PWD/$out/report.html (numbers: report.json, time line: trace.json.gz)"
